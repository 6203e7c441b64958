"""A field artifact: the values of a source, object by object, each with a receipt.

A field is read in blocks of whole days. Days with missing values are left out or stop the run, and
what is kept is written in objects of a fixed number of steps. A receipt says how far in the field
its object reaches, so that a run that was cut off goes on there, and brings nothing twice.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from numtok import files
from numtok.data.sources.base import FieldSource
from numtok.data.weather.field import (
    FOLDER,
    STEPS,
    OpenField,
    object_bytes,
    object_name,
    other_objects,
    physical_range,
)
from numtok.errors import DataError
from numtok.files import Sink
from numtok.store.artifact import Artifact, Output
from numtok.store.draft import Draft, shorten
from numtok.store.receipts import vouched, write_receipt
from numtok.stored_json import Natural

_DAY = "datetime64[D]"
_OBJECT = re.compile(r"/c\.([0-9]{1,9})\.0\.0$")  # of fields.object_name


class _ObjectFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    end: Natural
    dropped: list[str]
    preliminary: list[str]
    lowest: float
    highest: float


class _Kept(msgspec.Struct):
    """Of the facts of a field."""

    dropped: list[str] = []


@dataclass(kw_only=True)
class _State:
    """How far a run is: objects written, steps of the field that are in them or were left out."""

    objects: int = 0
    end: int = 0
    dropped: set[str] = field(default_factory=set)
    preliminary: set[str] = field(default_factory=set)
    values: list[NDArray[np.float32]] = field(default_factory=list)  # read, and not written yet
    steps: list[int] = field(default_factory=list)  # of these
    never: NDArray[np.bool_] | None = None  # the cells without any value up to now
    lowest: float = np.inf  # of the values in objects
    highest: float = -np.inf

    def written(self, lowest: float, highest: float) -> None:
        """Count one more object, with the range of its values."""
        self.objects += 1
        self.lowest, self.highest = min(self.lowest, lowest), max(self.highest, highest)


class FetchedField(NamedTuple):
    """What was counted, and what else the manifest says."""

    counts: dict[str, int]
    facts: dict[str, Any]


def write_field(
    draft: Draft,
    source: FieldSource,
    opened: OpenField,
    where: str,
    progress: Callable[[int, int], None],
) -> FetchedField:
    """Write what is left of a field; ``where`` says what it came from, ``progress`` is told the
    bytes done and in all.

    Raises DataError for missing steps, missing values and values outside the physical range,
    unless their days are dropped, and StoreError.
    """
    columns = (opened.times, opened.expected, opened.latitudes, opened.longitudes)
    axes = hashlib.sha256(b"".join(column.tobytes() for column in columns)).hexdigest()
    state = _continued(draft, axes, source.drops)
    lacking = _days(np.setdiff1d(opened.expected, opened.times))
    if lacking and not source.drops:
        raise _missing(opened, sorted(lacking), "not every step")
    state.dropped |= lacking
    folder = draft.path / FOLDER
    for place in (folder, folder / opened.variable):
        _make(place)
    total = sum(block.bytes for block in opened.blocks)
    done = sum(block.bytes for block in opened.blocks if block.end <= state.end)
    for block in opened.blocks:
        if block.end > state.end:
            progress(done, total)
            _take(state, opened, max(block.begin, state.end), block.end, source.drops)
            done += block.bytes
            while len(state.steps) >= STEPS:
                _write_object(draft, opened.variable, axes, state)
    progress(done, total)
    times = opened.times[~_among(opened.times, state.dropped)]
    if not len(times):
        raise DataError(
            f"no day is left: each of {opened.times[0]}..{opened.times[-1]} lacks values"
            f"{_told_never(state)}"
        )
    if state.steps:
        _write_object(draft, opened.variable, axes, state)
    years = dict.fromkeys(str(time)[:4] for time in times[[0, -1]])
    attributes = {
        **opened.attributes,
        "source": where,
        "licence": source.licence,
        "attribution": source.attribution("-".join(years)),
    }
    _write_others(draft, opened, times, attributes)
    return _described(state, opened, times, attributes)


def _described(
    state: _State, opened: OpenField, times: NDArray[np.datetime64], attributes: Mapping[str, str]
) -> FetchedField:
    counts = {
        "steps": len(times),
        "latitudes": len(opened.latitudes),
        "longitudes": len(opened.longitudes),
        "days": len(_days(times)),
        "days_dropped": len(state.dropped),
        "days_preliminary": len(state.preliminary),
    }
    facts: dict[str, Any] = {"first": str(times[0]), "last": str(times[-1]), **attributes}
    facts |= {"lowest": state.lowest, "highest": state.highest}
    for key, days in (("dropped", state.dropped), ("preliminary", state.preliminary)):
        if days:
            facts[key] = sorted(days)
    return FetchedField(counts, facts)


def _take(state: _State, opened: OpenField, begin: int, end: int, drops: bool) -> None:
    """Read a block, and keep its whole days."""
    read = opened.read(begin, end)
    times = opened.times[begin:end]
    there = np.isfinite(read.values)
    low, high = physical_range(opened.variable, opened.attributes["units"])
    outside = there & ((read.values < low) | (read.values > high))
    if outside.any() and not drops:
        raise _outside(opened, begin, read.values, outside)
    there &= ~outside
    found = _days(times[~there.all(axis=(1, 2))])
    never = np.logical_not(there.any(axis=0))
    state.never = never if state.never is None else np.logical_and(never, state.never)
    if found and not drops:
        raise _missing(opened, sorted(found), "not every value", _told_never(state))
    state.dropped |= found
    keep = ~_among(times, state.dropped)
    state.preliminary |= _days(times[keep & read.preliminary])
    state.values += list(read.values[keep])
    state.steps += (begin + np.flatnonzero(keep)).tolist()


def _continued(draft: Draft, axes: str, drops: bool) -> _State:
    """Where an earlier run stopped, if the axes were the same: a public store may since have got
    days that it lacked. Receipts behind a gap are of no use, nor are those behind a dropped day
    where none may be; their objects are made again."""
    state = _State()
    found = map(_OBJECT.search, vouched(draft.path))
    indices = {int(match[1]) for match in found if match}
    for index in sorted(indices):  # all of them, so that none of other axes stays behind
        receipt = draft.receipt(
            _unit(index), input=axes, settings=draft.version, facts=_ObjectFacts
        )
        if receipt is None or (receipt.facts.dropped and not drops):
            continue
        if index == state.objects:
            state.end = receipt.facts.end
            state.dropped = set(receipt.facts.dropped)
            state.preliminary = set(receipt.facts.preliminary)
            state.written(receipt.facts.lowest, receipt.facts.highest)
    return state


def _write_object(draft: Draft, variable: str, axes: str, state: _State) -> None:
    """The next object, and its receipt last."""
    name = f"{FOLDER}/{object_name(variable, state.objects)}"
    values = np.stack(state.values[:STEPS])
    with Sink(draft.path / name) as sink:
        sink.write(object_bytes(values))
    facts = _ObjectFacts(
        end=state.steps[:STEPS][-1] + 1,
        dropped=sorted(state.dropped),
        preliminary=sorted(state.preliminary),
        lowest=float(values.min()),
        highest=float(values.max()),
    )
    output = Output(name, sink.bytes, sink.sha256)
    write_receipt(
        draft.path,
        _unit(state.objects),
        input=axes,
        settings=draft.version,
        outputs=[output],
        facts=facts,
    )
    del state.values[:STEPS], state.steps[:STEPS]
    state.written(facts.lowest, facts.highest)


def _write_others(
    draft: Draft, opened: OpenField, times: NDArray[np.datetime64], attributes: Mapping[str, str]
) -> None:
    folder = draft.path / FOLDER
    made = other_objects(opened.variable, times, opened.latitudes, opened.longitudes, attributes)
    for name, content in made.items():
        parents = [parent for parent in PurePosixPath(name).parents if parent.name]
        for parent in reversed(parents):
            _make(folder / parent)
        with Sink(folder / name) as sink:
            sink.write(content)


def _make(folder: Path) -> None:
    with files.reporting("write to", folder), suppress(FileExistsError):
        files.system.mkdir(folder)


def check_kept(artifact: Artifact, drops: bool) -> None:
    """Raise DataError where days were left out of a field that is there, and may not be."""
    dropped = artifact.facts(_Kept).dropped
    if dropped and not drops:
        raise DataError(
            f"{artifact.ref} is there, and lacks {_counted(dropped)} whose values are missing; "
            "pass --missing drop to take it so, or choose another period or area"
        )


def _missing(opened: OpenField, days: Sequence[str], what: str, more: str = "") -> DataError:
    return DataError(
        f"{opened.variable} has {what} of {_counted(days)}{more}; choose another period or area, "
        "or leave such days out by --missing drop"
    )


def _outside(
    opened: OpenField, begin: int, values: NDArray[np.float32], outside: NDArray[np.bool_]
) -> DataError:
    """The first value [n, latitude, longitude] of the steps from ``begin`` on that is outside."""
    step, row, column = np.argwhere(outside)[0].tolist()
    units = opened.attributes["units"]
    low, high = physical_range(opened.variable, units)
    return DataError(
        f"{opened.variable} is {values[step, row, column]:g} {units} at "
        f"{opened.times[begin + step]}, latitude {opened.latitudes[row]:g}, longitude "
        f"{opened.longitudes[column]:g}; it must be {low:g} to {high:g}. "
        "Correct the data, or leave such days out: --missing drop"
    )


def _told_never(state: _State) -> str:
    """Where the same cells are empty at all hours, no period will do: that there are such."""
    if state.never is None or not 0 < (count := int(state.never.sum())) < state.never.size:
        return ""
    return (
        f": {count:,} of the {state.never.size:,} cells have none at any hour that was read, as "
        "the temperature of the sea has none on land; the area must be without such cells"
    )


def _counted(days: Sequence[str]) -> str:
    """``1 day (2019-03-02)``"""
    return f"{len(days):,} day{'s' * (len(days) > 1)} ({shorten(days)})"


def _days(times: NDArray[np.datetime64]) -> set[str]:
    return set(np.unique(times.astype(_DAY)).astype(str).tolist())


def _among(times: NDArray[np.datetime64], days: set[str]) -> NDArray[np.bool_]:
    return np.isin(times.astype(_DAY), np.array(sorted(days), _DAY))


def _unit(index: int) -> str:
    return f"object-{index:06d}"
