"""What ``numtok gen`` prints: the REF on stdout, the table for people on stderr."""

import msgspec

from numtok.cli.output.printing import Format, Size, count_rows, print_dry_run, print_made
from numtok.data.tables.table import read_table_file
from numtok.stages.gen import Result
from numtok.store.artifact import TABLE, Artifact


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
    task = " ".join(result.artifact.manifest.command[2:3])
    is_table = result.artifact.kind == TABLE
    notes = read_table_file(result.artifact.path).notes if is_table else []
    attribution = result.artifact.facts(_Facts).attribution
    print_made(
        result.artifact,
        f"made by {task}" if result.made else f"found, not made again: {task}",
        _rows(result.artifact, result.made),
        made=result.made,
        format=format,
        quiet=quiet,
        notes=[*notes, *filter(None, [attribution])],
    )


def _rows(artifact: Artifact, made: bool) -> list[tuple[str, object]]:
    manifest = artifact.manifest
    rows = count_rows(manifest.counts)
    facts = artifact.facts(_Facts)
    constants = (("mean", facts.mean), ("deviation", facts.deviation))
    rows += [(name, constant) for name, constant in constants if constant is not None]
    rows += [(f"period of {split}", period) for split, period in facts.periods.items()]
    rows += [("seed", manifest.seed), ("size", Size(manifest.bytes))]
    if made:
        rows.append(("seconds", round(artifact.seconds, 2)))
    return rows
