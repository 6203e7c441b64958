"""Probe artifacts, written and read."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from numtok import files
from numtok.analysis.probing.probe_records import (
    MAY_LACK,
    POINTS_FILE,
    PROBE_FILE,
    SCHEMA,
    SEEN_FILE,
    Probe,
    points_schema,
    seen_schema,
)
from numtok.errors import PluginError
from numtok.store.artifact import Artifact
from numtok.store.columns import check_nulls, check_schema, read_columns
from numtok.store.draft import Draft
from numtok.stored_json import StoredJson

_PROBE = StoredJson(name=PROBE_FILE, kind=Probe, newest=SCHEMA)


@dataclass(frozen=True, eq=False)
class LoadedProbe:
    """One probe artifact: its summary, its points, and the values of the target seen in training
    (None where there are none)."""

    ref: str
    probe: Probe
    points: "pa.Table"
    seen: "pa.Table | None"


def publish(
    draft: Draft,
    probe: Probe,
    points: "pa.Table",
    seen: "pa.Table | None",
    timing: Mapping[str, float],
) -> Artifact:
    """Write a probe and publish it.

    Raises PluginError unless the points are those that the summary speaks of.
    """
    wanted = points_schema(probe.found)
    if not points.schema.equals(wanted):
        got, expected = (_columns(schema) for schema in (points.schema, wanted))
        raise PluginError(f"probe {probe.form} gives points of {got}, expected {expected}")
    for name in set(wanted.names) - set(MAY_LACK):
        if lost := points.column(name).null_count:
            raise PluginError(f"probe {probe.form} gives {lost:,} points without {name!r}")
    for name, table in ((POINTS_FILE, points), (SEEN_FILE, seen)):
        if table is not None:
            with files.Sink(draft.path / name) as sink:
                pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    _PROBE.write(draft.path, probe)
    return draft.publish({"points": len(points)}, timing)


def read(artifact: Artifact) -> LoadedProbe:
    """Raises StoreError for a probe that is damaged or of a newer schema."""
    names = {output.path for output in artifact.files()}
    probe = _PROBE.read(artifact.path)
    return LoadedProbe(
        artifact.ref,
        probe,
        _table(artifact.path / POINTS_FILE, points_schema(probe.found)),
        _table(artifact.path / SEEN_FILE, seen_schema()) if SEEN_FILE in names else None,
    )


def _columns(schema: "pa.Schema") -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _table(path: Path, schema: "pa.Schema") -> "pa.Table":
    found = read_columns(path, lambda there: check_schema(path, there, schema))
    check_nulls(path, found, MAY_LACK.__contains__)
    return found
