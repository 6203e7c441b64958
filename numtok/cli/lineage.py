"""``numtok lineage``: show the artifacts and files that an artifact was made from."""

from typing import TYPE_CHECKING, Any

import typer

from numtok.cli._shared import OneJsonOption, RefArgument, open_store
from numtok.cli.output.printing import Size, one_line, print_json
from numtok.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numtok.store.artifact import Parent
    from numtok.store.store import Store

_DEEPEST = 300  # generations in JSON, where they nest: parsers limit the depth


def command(context: typer.Context, ref: RefArgument, json: OneJsonOption = False) -> None:
    """Show what an artifact was made from.

    Lists its ancestors up to the raw files. An ancestor that was already listed is marked "as
    above".

    Example: numtok lineage era5-p1000
    """
    store = open_store(context)
    nodes = list(_nodes(store, store.resolve(ref).as_parent()))
    if not json:
        for depth, node in nodes:
            _print(depth, node)
        return
    if max(depth for depth, _ in nodes) > _DEEPEST:
        raise UsageError(
            f"{ref} has more than {_DEEPEST} generations of ancestors, too many for one JSON "
            "object; leave --json out"
        )
    print_json({"lineage": nodes[0][1]})


def _nodes(store: "Store", root: "Parent") -> "Iterator[tuple[int, dict[str, Any]]]":
    """Yield an artifact and its ancestors with their depths, children before parents.

    The parents of an artifact are visited once, so that an edited manifest cannot cause a loop.
    """
    from msgspec.structs import asdict

    seen: set[Parent] = set()
    top: list[dict[str, Any]] = []
    waiting = [(0, root, top)]
    while waiting:
        depth, one, siblings = waiting.pop()
        node: dict[str, Any] = asdict(one) | {"parents": []}
        siblings.append(node)
        if one.kind != "file":
            name, _, version = one.where.partition("@")
            artifact = store.find(one.kind, name, version)
            # An artifact of that name with another digest is not the parent.
            node["here"] = artifact is not None and artifact.manifest.content == one.digest
            if artifact is not None and node["here"] and (parents := artifact.manifest.parents):
                if one in seen:
                    node["above"] = True
                else:
                    seen.add(one)
                    waiting += [(depth + 1, parent, node["parents"]) for parent in parents[::-1]]
        yield depth, node


def _print(depth: int, node: dict[str, Any]) -> None:
    indent = "  " * depth
    missing = "" if node.get("here", True) else ", not in this store"
    if node.get("above"):
        missing = ", as above"
    size = f"{Size(node['bytes'])}, sha256 {node['digest'][:16]}{missing}"
    first = f"{indent}from " if depth else ""
    print(f"{first}{node['kind']} {one_line(node['where'])}")
    print(f"{indent}  {size}")
