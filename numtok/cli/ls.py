"""``numtok ls``: list the artifacts in the store."""

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format, Size, counted, print_table

if TYPE_CHECKING:
    from numtok.store.artifact import Artifact


def command(
    context: typer.Context,
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATTERN]...",
            help="Kinds, names, REFs or kind/REFs to list; * matches anything (default all)",
        ),
    ] = None,
    format: Format = Format.TABLE,
) -> None:
    """List the artifacts in the store.

    Example: numtok ls model 'era5-*' --json
    """
    from numtok.errors import StoreError

    rows: list[tuple[object, ...]] = []
    for artifact in open_store(context).artifacts():
        if patterns and not _like(artifact, patterns):
            continue
        try:
            manifest = artifact.manifest
            sizes = (manifest.counts.get("rows"), manifest.files, Size(manifest.bytes))
        except StoreError as error:
            # One damaged artifact must not hide the others.
            context.obj.note(str(error))
            rows.append((artifact.kind, artifact.ref, None, None, None))
        else:
            rows.append((artifact.kind, artifact.ref, *sizes))
    columns = ("kind", "ref", "rows", "files", "bytes")
    print_table(counted(len(rows), "artifact"), columns, rows, format)


def _like(artifact: "Artifact", patterns: list[str]) -> bool:
    whole = f"{artifact.kind}/{artifact.ref}"
    told = (artifact.kind, artifact.name, artifact.ref, whole)
    return any(fnmatchcase(one, pattern) for one in told for pattern in patterns)
