"""Prints table artifacts: the REF on stdout, the rest on stderr."""

import msgspec

from numtok.cli.output.printing import Format, Rows, Size, print_made, rows_by_split
from numtok.data.reading.split_rule import TRAIN
from numtok.data.tables.table import TableFile, read_table_file, read_table_of, twin_notes
from numtok.store.artifact import Artifact
from numtok.stored_json import Natural


class _TableCounts(msgspec.Struct):
    rows: Natural
    features: Natural


def print_result(artifact: Artifact, made: bool, format: Format, quiet: bool) -> None:
    """Print a table artifact. In formats other than ``table``, everything is printed on stdout.

    ``made`` is False if the artifact already existed.
    """
    file, table = read_table_file(artifact), read_table_of(artifact)
    notes = list(file.notes)
    if TRAIN in (splits := table.splits()):  # of the first fold
        notes += twin_notes(table, [name for name in splits if name != TRAIN])
    title = f"table with target {file.target!r}" + ("" if made else " (already in the store)")
    print_made(
        artifact,
        title,
        _rows(artifact, file),
        made=made,
        format=format,
        quiet=quiet,
        notes=notes,
        more={"notes": notes},
    )


def _rows(artifact: Artifact, file: TableFile) -> Rows:
    counts = artifact.counts(_TableCounts)
    kinds = [feature.kind for feature in file.features]
    return [
        ("rows", counts.rows),
        *rows_by_split(artifact.manifest.counts),
        ("features", counts.features),
        ("  numbers", kinds.count("number")),
        ("  categories", kinds.count("category")),
        *[("folds", len(file.splits))] * (len(file.splits) > 1),
        ("size", Size(artifact.manifest.bytes)),
    ]
