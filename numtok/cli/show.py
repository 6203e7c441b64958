"""``numtok show``: the settings of an artifact, and the command line that makes it again."""

import shlex
from collections.abc import Iterator
from typing import Any

import typer

from numtok.cli._shared import OneJsonOption, RefArgument, open_store
from numtok.cli.output.printing import Size, counted, one_line, print_json, print_table

_SHOWN_FILES = 20


def command(context: typer.Context, ref: RefArgument, json: OneJsonOption = False) -> None:
    """Show the settings of an artifact.

    The first line is the command that rebuilds it.

    Example: numtok show era5-p1000
    """
    import msgspec

    artifact = open_store(context).resolve(ref)
    manifest, files = artifact.manifest, artifact.files()
    plain = msgspec.to_builtins(manifest)
    if json:
        told = {"ref": artifact.ref, "folder": str(artifact.path), "manifest": plain}
        print_json(told | {"files": msgspec.to_builtins(files)})
        return
    parents = [("made from", f"{one.kind} {one.where}") for one in manifest.parents]
    facts = [
        *parents,
        *_flat("", plain["counts"]),
        *_flat("", manifest.facts),
        *_flat("", plain["settings"]),
        *_flat("", plain["made_by"]),
        ("content", manifest.content),
        ("folder", str(artifact.path)),
    ]
    print(one_line(shlex.join(manifest.command)))  # on a line of its own, to be copied
    print_table(f"{manifest.kind}/{artifact.ref}", ("field", "value"), facts)
    rows = [(file.path, Size(file.bytes)) for file in files[:_SHOWN_FILES]]
    rest = f"; the first {_SHOWN_FILES}:" if len(files) > _SHOWN_FILES else ""
    title = f"{counted(len(files), 'file')}, {Size(manifest.bytes)}{rest}"
    print_table(title, ("file", "bytes"), rows)


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    """``{"a": {"b": 1}} -> ("a.b", "1")``"""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _flat(f"{prefix}.{key}" if prefix else key, item)
    elif prefix:
        yield prefix, "-" if value is None else str(value)
