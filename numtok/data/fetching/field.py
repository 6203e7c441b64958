"""Write a weather field as an artifact, object by object, so that an interrupted run can resume.

The source is read in blocks of whole days. Days with missing values are dropped or cause an error.
The other days are written in objects of a fixed number of time steps, each with a receipt
(``store.receipts``). A receipt records the step after the last one in its object, so a resumed run
continues from that step and only reads the unfinished object again.
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
from numtok.names import counted
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


class _DroppedDays(msgspec.Struct):
    """The dropped days, as stored among the facts about a field."""

    dropped: list[str] = []


@dataclass(kw_only=True)
class _State:
    """Progress of a run: objects written, and the steps of the field done or dropped."""

    objects: int = 0
    end: int = 0
    dropped: set[str] = field(default_factory=set)
    preliminary: set[str] = field(default_factory=set)
    values: list[NDArray[np.float32]] = field(default_factory=list)  # read but not yet written
    steps: list[int] = field(default_factory=list)  # of ``values``
    never: NDArray[np.bool_] | None = None  # cells without any value so far
    lowest: float = np.inf  # of the written values
    highest: float = -np.inf

    def written(self, lowest: float, highest: float) -> None:
        """Add one object to the count, and its values to the range."""
        self.objects += 1
        self.lowest, self.highest = min(self.lowest, lowest), max(self.highest, highest)


class FetchedField(NamedTuple):
    """Counts and other facts about a written field, for the manifest of its artifact."""

    counts: dict[str, int]
    facts: dict[str, Any]


def write_field(
    draft: Draft,
    source: FieldSource,
    opened: OpenField,
    where: str,
    progress: Callable[[int, int], None],
) -> FetchedField:
    """Write a weather field to a draft, or resume an interrupted write.

    ``where`` describes the origin of the data. ``progress`` is called with the number of bytes
    processed so far and the total. Raises StoreError if the disk or the network fails. Raises
    DataError if a day has missing steps, missing values or values outside the physical range,
    unless the source drops such days, and also if no day is left.
    """
    columns = (opened.times, opened.expected, opened.latitudes, opened.longitudes)
    axes = hashlib.sha256(b"".join(column.tobytes() for column in columns)).hexdigest()
    state = _continued(draft, axes, source.drops)
    lacking = _days(np.setdiff1d(opened.expected, opened.times))
    if lacking and not source.drops:
        raise _missing(opened, sorted(lacking), "missing steps")
    state.dropped |= lacking
    folder = draft.path / FOLDER
    for subfolder in (folder, folder / opened.variable):
        _make(subfolder)
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
            f"no day is left: every day of {opened.times[0]}..{opened.times[-1]} lacks values"
            f"{_never_note(state)}"
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
    """Read a block and keep its complete days."""
    read = opened.read(begin, end)
    times = opened.times[begin:end]
    valid = np.isfinite(read.values)
    low, high = physical_range(opened.variable, opened.attributes["units"])
    outside = valid & ((read.values < low) | (read.values > high))
    if outside.any() and not drops:
        raise _outside(opened, begin, read.values, outside)
    valid &= ~outside
    lacking = _days(times[~valid.all(axis=(1, 2))])
    never = np.logical_not(valid.any(axis=0))
    state.never = never if state.never is None else np.logical_and(never, state.never)
    if lacking and not drops:
        raise _missing(opened, sorted(lacking), "missing values", _never_note(state))
    state.dropped |= lacking
    keep = ~_among(times, state.dropped)
    state.preliminary |= _days(times[keep & read.preliminary])
    state.values += list(read.values[keep])
    state.steps += (begin + np.flatnonzero(keep)).tolist()


def _continued(draft: Draft, axes: str, drops: bool) -> _State:
    """Return the state in which an earlier run stopped, if the axes are still the same.

    Axes change when a public store adds days that were missing. Receipts after a gap are ignored,
    and so are receipts after a dropped day unless ``drops``; their objects are written again.
    """
    state = _State()
    matches = map(_OBJECT.search, vouched(draft.path))
    indices = {int(match[1]) for match in matches if match}
    for index in sorted(indices):  # all of them, to remove those with other axes
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
    """Write the next object, then its receipt."""
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
    objects = other_objects(opened.variable, times, opened.latitudes, opened.longitudes, attributes)
    for name, content in objects.items():
        parents = [parent for parent in PurePosixPath(name).parents if parent.name]
        for parent in reversed(parents):
            _make(folder / parent)
        with Sink(folder / name) as sink:
            sink.write(content)


def _make(folder: Path) -> None:
    with files.reporting("write to", folder), suppress(FileExistsError):
        files.system.mkdir(folder)


def check_kept(artifact: Artifact, drops: bool) -> None:
    """Raise DataError if an existing field lacks dropped days, unless ``drops`` allows this."""
    dropped = artifact.facts(_DroppedDays).dropped
    if dropped and not drops:
        raise DataError(
            f"the existing {artifact.ref} lacks {_counted(dropped)} with missing values. Accept "
            "it: --missing drop; or choose another period or area"
        )


def _missing(opened: OpenField, days: Sequence[str], what: str, more: str = "") -> DataError:
    return DataError(
        f"{opened.variable} has {what} on {_counted(days)}{more}. Choose another period or area, "
        "or drop such days: --missing drop"
    )


def _outside(
    opened: OpenField, begin: int, values: NDArray[np.float32], outside: NDArray[np.bool_]
) -> DataError:
    """Return the error for the first value [n, latitude, longitude] outside the physical range."""
    step, row, column = np.argwhere(outside)[0].tolist()
    units = opened.attributes["units"]
    low, high = physical_range(opened.variable, units)
    return DataError(
        f"{opened.variable} is {values[step, row, column]:g} {units} at "
        f"{opened.times[begin + step]}, latitude {opened.latitudes[row]:g}, longitude "
        f"{opened.longitudes[column]:g}; it must be {low:g} to {high:g}. "
        "Correct the data, or drop such days: --missing drop"
    )


def _never_note(state: _State) -> str:
    """Describe cells that are always empty, for which no other period helps."""
    if state.never is None or not 0 < (count := int(state.never.sum())) < state.never.size:
        return ""
    return (
        f": {count:,} of {state.never.size:,} cells never have a value (sea temperature, for "
        "example, is missing on land). Choose an area without such cells"
    )


def _counted(days: Sequence[str]) -> str:
    """Format days with their number: ``1 day (2019-03-02)``."""
    return f"{counted(len(days), 'day')} ({shorten(days)})"


def _days(times: NDArray[np.datetime64]) -> set[str]:
    return set(np.unique(times.astype(_DAY)).astype(str).tolist())


def _among(times: NDArray[np.datetime64], days: set[str]) -> NDArray[np.bool_]:
    return np.isin(times.astype(_DAY), np.array(sorted(days), _DAY))


def _unit(index: int) -> str:
    return f"object-{index:06d}"
