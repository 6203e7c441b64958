"""``numtok show``: print the settings of an artifact and the command line that rebuilds it."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from numtok.cli._shared import OneJsonOption, RefArgument, open_store
from numtok.cli.output.printing import Size, one_line, print_json, print_table
from numtok.names import counted

_SHOWN_FILES = 20
_SEEDS = "seed"  # the end of names of settings whose values are not amounts
_ONLY_IN_FULL = ("libraries", "revision")  # of settings and provenance


def command(
    context: typer.Context,
    ref: RefArgument,
    full: Annotated[
        bool, typer.Option("--full", help="Also show libraries, revisions and digests")
    ] = False,
    json: OneJsonOption = False,
) -> None:
    """Show the settings, contents and origin of an artifact.

    Also shows the command that rebuilds the artifact.


    Example: numtok show era5-p1000
    """
    import msgspec

    artifact = open_store(context).resolve(ref)
    manifest, files = artifact.manifest, artifact.files()
    plain = msgspec.to_builtins(manifest)
    if json:
        facts = {"ref": artifact.ref, "folder": str(artifact.path), "manifest": plain}
        print_json(facts | {"files": msgspec.to_builtins(files)})
        return
    print(one_line(shlex.join(manifest.command)))  # on a line of its own, to be copied
    print()
    contents = [*_flat("", plain["counts"]), *_flat("", manifest.facts)]
    contents += [("size", f"{Size(manifest.bytes)} in {counted(len(files), 'file')}")]
    _section(f"{manifest.kind}/{artifact.ref}", contents)
    _section("settings", _flat("", _shown(plain["settings"], full)))
    origin = [("made from", f"{parent.kind} {parent.where}") for parent in manifest.parents]
    origin += [*_flat("", _shown(plain["made_by"], full)), ("folder", str(artifact.path))]
    _section("provenance", [*origin, ("content", manifest.content)] if full else origin)
    rows = [(file.path, Size(file.bytes)) for file in files[:_SHOWN_FILES]]
    rest = f"; the first {_SHOWN_FILES}:" if len(files) > _SHOWN_FILES else ""
    print_table(f"{counted(len(files), 'file')}{rest}", ("file", "size"), rows)
    if not full:
        context.obj.next(f"numtok show {artifact.name} --full")


def _section(title: str, facts: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> None:
    if rows := list(facts):
        print_table(title, ("item", "value"), rows)
        print()


def _shown(settings: Any, full: bool) -> Any:
    """Leave out libraries and revisions, at any depth, unless ``full``."""
    if full or not isinstance(settings, Mapping):
        return settings
    return {key: _shown(value, full) for key, value in settings.items() if key not in _ONLY_IN_FULL}


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    """Flatten nested settings: ``{"a": {"b": 1}} -> ("a.b", "1")``"""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _flat(f"{prefix}.{key}" if prefix else key, item)
    elif prefix and isinstance(value, bool):
        yield prefix, "yes" if value else "no"
    elif prefix and isinstance(value, int):
        yield prefix, f"{value}" if prefix.endswith(_SEEDS) else f"{value:,}"
    elif prefix:
        yield prefix, "-" if value is None else str(value)
