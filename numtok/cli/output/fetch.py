"""Prints the data that ``numtok fetch`` downloaded: tables, texts and weather fields."""

import msgspec

from numtok.cli.output import table
from numtok.cli.output.printing import (
    Format,
    Rows,
    Size,
    count_rows,
    print_dry_run,
    print_made,
)
from numtok.names import counted
from numtok.stages.fetch import FetchEstimate, Result
from numtok.store.artifact import DATA, FIELD, Artifact
from numtok.store.draft import shorten
from numtok.stored_json import Natural


class _FieldSettings(msgspec.Struct):
    variable: str


class _FieldCounts(msgspec.Struct, kw_only=True):
    steps: Natural
    latitudes: Natural
    longitudes: Natural
    days: Natural
    days_dropped: Natural
    days_preliminary: Natural


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
    """Print one downloaded artifact. In formats other than ``table``, everything is printed on
    stdout."""
    if result.estimate is not None:
        print_dry_run(result.ref, _expected(result.estimate), format)
        return
    assert result.artifact is not None
    artifact, made = result.artifact, result.made
    if artifact.kind not in (DATA, FIELD):
        table.print_result(artifact, made, format, quiet)
        return
    title, rows, notes = (_texts if artifact.kind == DATA else _field)(artifact, made)
    print_made(
        artifact,
        title,
        rows,
        made=made,
        format=format,
        quiet=quiet,
        notes=notes,
        more={"facts": artifact.manifest.facts},
    )


def _texts(artifact: Artifact, made: bool) -> tuple[str, Rows, list[str]]:
    facts = artifact.facts(_TextFacts)
    rows = [*count_rows(artifact.manifest.counts), ("size", Size(artifact.manifest.bytes))]
    notes = [f"licence: {facts.licence}", facts.attribution]
    notes += [*facts.notes, *(f"left out: {why}" for why in facts.rejected)]
    return "texts" if made else "texts (already in the store)", rows, notes


def _field(artifact: Artifact, made: bool) -> tuple[str, Rows, list[str]]:
    facts, counts = artifact.facts(_FieldFacts), artifact.counts(_FieldCounts)
    variable = artifact.settings(_FieldSettings).variable
    title = f"field of {variable}" + ("" if made else " (already in the store)")
    rows: Rows = [
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
    reasons = {"left out": facts.dropped, "of preliminary data (ERA5T)": facts.preliminary}
    notes = [facts.attribution]
    for why, days in reasons.items():
        if days:
            notes.append(f"{counted(len(days), 'day')} {why}: {shorten(days)}")
    return title, rows, notes


def _expected(estimate: FetchEstimate) -> Rows:
    return [
        ("steps", estimate.steps),
        ("  first", estimate.first),
        ("  last", estimate.last),
        ("latitudes", estimate.latitudes),
        ("longitudes", estimate.longitudes),
        *[("objects to read", estimate.requests)] * bool(estimate.requests),
        ("unpacked size", Size(estimate.bytes)),
    ]
