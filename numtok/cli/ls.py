"""``numtok ls``."""

import typer

from numtok.cli._shared import (
    Format,
    FormatOption,
    JsonOption,
    Size,
    counted,
    open_store,
    print_table,
)


def command(
    context: typer.Context, format: FormatOption = Format.TABLE, json: JsonOption = False
) -> None:
    """List the artifacts in the store.

    Example: numtok ls --json
    """
    from numtok.errors import StoreError

    rows: list[tuple[object, ...]] = []
    for artifact in open_store(context).artifacts():
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
    print_table(counted(len(rows), "artifact"), columns, rows, Format.JSON if json else format)
