"""What ``numtok gen`` prints: the REF on stdout, the table for people on stderr."""

import msgspec

from numtok.cli.output.printing import (
    Format,
    Size,
    print_dry_run,
    print_made,
    print_made_json,
    rows_by_split,
)
from numtok.data.tables.table import read_table_file
from numtok.records import TABLE, Natural
from numtok.stages.gen import Result
from numtok.store.artifact import Artifact


class _GenCounts(msgspec.Struct):
    rows: Natural


class _Facts(msgspec.Struct):
    """Of tasks that have such."""

    attribution: str = ""
    mean: float | None = None
    deviation: float | None = None
    periods: dict[str, str] = {}


def print_result(result: Result, format: Format, quiet: bool) -> None:
    """Print one run; with a format other than the table, that on stdout instead of the REF."""
    if result.estimate is not None:
        size = Size(result.estimate.bytes)
        print_dry_run(result.ref, [("rows", result.estimate.rows), ("size, about", size)], format)
        return
    assert result.artifact is not None
    if format is Format.JSON:
        print_made_json(result.artifact, result.made)
        return
    task = " ".join(result.artifact.manifest.command[2:3])
    title = f"made by {task}" if result.made else f"found, not made again: {task}"
    rows = _rows(result.artifact, result.made)
    is_table = result.artifact.kind == TABLE
    notes = read_table_file(result.artifact.path).notes if is_table else []
    if attribution := result.artifact.facts(_Facts).attribution:
        notes = [*notes, attribution]
    print_made(title, result.ref, rows, format=format, quiet=quiet, notes=notes)


def _rows(artifact: Artifact, made: bool) -> list[tuple[str, object]]:
    manifest = artifact.manifest
    rows: list[tuple[str, object]] = [("rows", artifact.counts(_GenCounts).rows)]
    rows += rows_by_split(manifest.counts)
    rows += [
        (key.replace("_", " "), count)
        for key, count in sorted(manifest.counts.items())
        if not key.startswith("rows")
    ]
    facts = artifact.facts(_Facts)
    constants = (("mean", facts.mean), ("deviation", facts.deviation))
    rows += [(name, constant) for name, constant in constants if constant is not None]
    rows += [(f"period of {split}", period) for split, period in facts.periods.items()]
    rows += [("seed", manifest.seed), ("size", Size(manifest.bytes))]
    if made:
        rows.append(("seconds", round(artifact.seconds, 2)))
    return rows
