"""What ``numtok table`` and ``fetch`` print: the REF on stdout, the table and notes on stderr."""

import msgspec

from numtok.cli.output.printing import Format, Size, print_made, print_made_json, rows_by_split
from numtok.data.tables.table import TableFile, read_table_file
from numtok.records import Natural
from numtok.store.artifact import Artifact


class _TableCounts(msgspec.Struct):
    rows: Natural
    features: Natural


def print_result(artifact: Artifact, made: bool, format: Format, quiet: bool) -> None:
    """Print one table artifact; with a format for programs, that on stdout instead of the REF."""
    file = read_table_file(artifact.path)
    if format is Format.JSON:
        print_made_json(artifact, made, notes=file.notes)
        return
    title = f"a table with the target {file.target!r}" if made else "found, not made again"
    print_made(
        title, artifact.ref, _rows(artifact, file), format=format, quiet=quiet, notes=file.notes
    )


def _rows(artifact: Artifact, file: TableFile) -> list[tuple[str, object]]:
    counts = artifact.counts(_TableCounts)
    kinds = [feature.kind for feature in file.features]
    rows: list[tuple[str, object]] = [
        ("rows", counts.rows),
        *rows_by_split(artifact.manifest.counts),
    ]
    rows += [("features", counts.features), ("  numbers", kinds.count("number"))]
    rows += [("  categories", kinds.count("category"))]
    if len(file.splits) > 1:
        rows.append(("folds", len(file.splits)))
    return [*rows, ("size", Size(artifact.manifest.bytes))]
