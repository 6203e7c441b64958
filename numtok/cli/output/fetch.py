"""What ``numtok fetch`` prints: of a table as ``numtok table``, of others what they are."""

import msgspec

from numtok.cli.output import table
from numtok.cli.output.printing import (
    Format,
    Size,
    counted,
    print_dry_run,
    print_made,
    print_made_json,
)
from numtok.records import DATA, FIELD, Natural
from numtok.stages.fetch import FetchEstimate, Result
from numtok.store.artifact import Artifact
from numtok.store.draft import shorten


class _FieldSettings(msgspec.Struct):
    variable: str


class _FieldCounts(msgspec.Struct, kw_only=True):
    steps: Natural
    latitudes: Natural
    longitudes: Natural
    days: Natural
    days_dropped: Natural
    days_preliminary: Natural


class _TextCounts(msgspec.Struct):
    rows: Natural


class _FieldFacts(msgspec.Struct, kw_only=True):
    attribution: str
    first: str
    last: str
    units: str
    lowest: float
    highest: float
    dropped: list[str] = []
    preliminary: list[str] = []


class _TextFacts(msgspec.Struct):
    licence: str
    attribution: str
    notes: list[str] = []
    rejected: list[str] = []


def print_result(result: Result, format: Format, quiet: bool) -> None:
    """Print one thing that was fetched; with a format for programs, that on stdout instead of its
    REF."""
    if result.estimate is not None:
        print_dry_run(result.ref, _expected(result.estimate), format)
        return
    assert result.artifact is not None
    if result.artifact.kind not in (DATA, FIELD):
        table.print_result(result.artifact, result.made, format, quiet)
        return
    if format is Format.JSON:
        print_made_json(result.artifact, result.made, facts=result.artifact.manifest.facts)
        return
    if result.artifact.kind == DATA:
        _print_texts(result.artifact, result.made, format, quiet)
        return
    variable = result.artifact.settings(_FieldSettings).variable
    title = f"a field of {variable}" if result.made else f"found, not made again: {variable}"
    facts = result.artifact.facts(_FieldFacts)
    notes = [facts.attribution]
    for days, told in (
        (facts.dropped, "left out"),
        (facts.preliminary, "of ERA5T, the preliminary data"),
    ):
        if days:
            notes.append(f"{counted(len(days), 'day')} {told}: {shorten(days)}")
    print_made(
        title, result.ref, _rows(result.artifact, facts), format=format, quiet=quiet, notes=notes
    )


def _print_texts(artifact: Artifact, made: bool, format: Format, quiet: bool) -> None:
    facts = artifact.facts(_TextFacts)
    rows: list[tuple[str, object]] = [("rows", artifact.counts(_TextCounts).rows)]
    for key, count in sorted(artifact.manifest.counts.items()):
        if key != "rows":
            told = f"  {key.removeprefix('rows_')}" if key.startswith("rows_") else key
            rows.append((told.replace("_", " "), count))
    rows.append(("size", Size(artifact.manifest.bytes)))
    notes = [f"licence: {facts.licence}", facts.attribution]
    notes += [*facts.notes, *(f"left out: {why}" for why in facts.rejected)]
    title = "texts" if made else "found, not made again"
    print_made(title, artifact.ref, rows, format=format, quiet=quiet, notes=notes)


def _expected(estimate: FetchEstimate) -> list[tuple[str, object]]:
    return [
        ("steps", estimate.steps),
        ("  first", estimate.first),
        ("  last", estimate.last),
        ("latitudes", estimate.latitudes),
        ("longitudes", estimate.longitudes),
        *([("objects to be read", estimate.requests)] if estimate.requests else []),
        ("to be read, unpacked", Size(estimate.bytes)),
    ]


def _rows(artifact: Artifact, facts: _FieldFacts) -> list[tuple[str, object]]:
    counts = artifact.counts(_FieldCounts)
    return [
        ("steps", counts.steps),
        ("  first", facts.first),
        ("  last", facts.last),
        ("latitudes", counts.latitudes),
        ("longitudes", counts.longitudes),
        ("days", counts.days),
        ("  left out", counts.days_dropped),
        ("  ERA5T", counts.days_preliminary),
        ("units", facts.units),
        ("  lowest", facts.lowest),
        ("  highest", facts.highest),
        ("size", Size(artifact.manifest.bytes)),
    ]
