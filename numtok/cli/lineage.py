"""``numtok lineage``."""

from typing import TYPE_CHECKING, Any

import typer

from numtok.cli._shared import OneJsonOption, RefArgument, Size, one_line, open_store, print_json

if TYPE_CHECKING:
    from numtok.artifact import Parent
    from numtok.store import Store


def command(context: typer.Context, ref: RefArgument, json: OneJsonOption = False) -> None:
    """Show what an artifact was made from, up to the raw files.

    Example: numtok lineage era5-p1000
    """
    store = open_store(context)
    root = store.resolve(ref).as_parent()
    tree = _tree(store, root, ())
    if json:
        print_json({"lineage": tree})
    else:
        _print(tree, "", "")


def _tree(store: "Store", one: "Parent", above: "tuple[Parent, ...]") -> dict[str, Any]:
    node: dict[str, Any] = {
        "kind": one.kind,
        "where": one.where,
        "digest": one.digest,
        "bytes": one.bytes,
        "parents": [],
    }
    if one.kind == "file":
        return node
    name, _, version = one.where.partition("@")
    artifact = store.find(one.kind, name, version)
    # The digest decides: an artifact of that name with other content is not the parent.
    node["here"] = artifact is not None and artifact.manifest.content == one.digest
    # Only an edited manifest makes an artifact its own ancestor; it is shown once.
    if artifact is not None and node["here"] and one not in above:
        node["parents"] = [_tree(store, p, (*above, one)) for p in artifact.manifest.parents]
    return node


def _print(node: dict[str, Any], first: str, rest: str) -> None:
    missing = "" if node.get("here", True) else ", no longer in the store"
    size = f"{Size(node['bytes'])}, sha256 {node['digest'][:16]}{missing}"
    print(f"{first}{node['kind']} {one_line(node['where'])}")
    print(f"{rest}  {size}")
    for parent in node["parents"]:
        _print(parent, f"{rest}  from ", f"{rest}  ")
