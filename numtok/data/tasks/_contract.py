"""Checks that a task fulfills its contract, run by ``numtok check task NAME``.

A task that reads an artifact is checked with a small artifact of that kind.
"""

import atexit
import hashlib
import json
import pickle
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from numtok.contracts import (
    CheckResult,
    check_declared,
    check_examples,
    check_settings,
    checks_of,
    expect,
    expect_array,
    expect_kind,
    once_a_run,
    require,
    results,
)
from numtok.data.reading.split_rule import is_split
from numtok.data.tasks.base import SHARES, TASKS, DerivedTask, TableTask, Task, TaskSplit, TextTask
from numtok.data.weather.field import FOLDER, STEPS, object_bytes, object_name, other_objects
from numtok.declaration import settings_in
from numtok.errors import UsageError
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.scan import scan
from numtok.row import Row
from numtok.store.artifact import FIELD

LATITUDES, LONGITUDES = np.arange(50, 58, 0.5), np.arange(-10, 2, 0.75)  # 16 each
ATTRIBUTION = "Made up."


def hours(count: int, first: str = "2019-01-01", step: int = 1) -> NDArray[np.datetime64]:
    """Return consecutive times (datetime64[count]) that are ``step`` hours apart."""
    return np.datetime64(first, "h") + step * np.arange(count)


def waves(times: NDArray[np.datetime64], cells: int) -> NDArray[np.float32]:
    """Return values [times, cells] in sixteenths, which are exact in float32."""
    hour = times.astype(np.int64)[:, None]
    cell = np.arange(cells)
    day = np.abs(hour % 24 - 12)
    return (280 + (8 * day + hour // 24 % 7 + 5 * cell % 64 + hour * cell % 13) / 16).astype("f4")


def write_field(
    folder: Path,
    times: NDArray[np.datetime64],
    values: NDArray[np.float32],
    latitudes: NDArray[np.float64] = LATITUDES,
    longitudes: NDArray[np.float64] = LONGITUDES,
    variable: str = "2m_temperature",
    units: str = "K",
) -> None:
    """Write a field with values [times, cells] to a folder (see ``weather.field``)."""
    grid = values.reshape(len(times), len(latitudes), len(longitudes))
    attributes = {"units": units, "attribution": ATTRIBUTION}
    objects = other_objects(variable, times, latitudes, longitudes, attributes)
    for index in range(-(-len(times) // STEPS)):
        part = grid[index * STEPS : (index + 1) * STEPS]
        objects[object_name(variable, index)] = object_bytes(part)
    for key, content in objects.items():
        path = folder / FOLDER / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@cache
def small_field() -> Path:
    """Return the folder of an example field with 60 days and 256 cells, used for digests."""
    folder = Path(tempfile.mkdtemp(prefix="numtok-field-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    times = hours(60 * 24)
    write_field(folder, times, waves(times, len(LATITUDES) * len(LONGITUDES)))
    return folder


TRAIN = TaskSplit("train", 100)  # owns all hashes; digests are taken over this sample
TEST = TaskSplit("test", 60, SHARES - SHARES // 10, SHARES)
REST = TaskSplit("train", 300, 0, SHARES - SHARES // 10)
_ARTIFACTS: dict[str, Callable[[], Path]] = {FIELD: small_field}  # folder of an example, by kind


def ready(task: Task, *splits: TaskSplit) -> TextTask | TableTask:
    """Return the task, bound to an example artifact with these splits if it reads one."""
    if isinstance(task, DerivedTask):
        return task.over(_ARTIFACTS[task.reads](), splits).task
    bound: TextTask | TableTask = expect_kind(task, "__class__", task, TextTask, TableTask)
    return bound


def rows_in(content: bytes) -> list[Row]:
    """Decode the rows of a unit. Raises an error if a row is invalid."""
    return msgspec.json.Decoder(Row).decode_lines(content)


def _texts(task: Task) -> TextTask | None:
    """Return the task that generates texts; None for a task of tables."""
    bound = ready(task, TEST, REST)
    return bound if isinstance(bound, TextTask) else None


def _whole(task: TextTask, split: TaskSplit) -> list[Row]:
    """Generate the rows of a split unit by unit."""
    units = range(-(-split.rows // task.unit_rows))
    return [row for index in units for row in rows_in(task.unit(0, split, index).rows)]


@once_a_run
def _rest(task: Task) -> list[Row]:
    """Generate the rows of :data:`REST`; none for a task of tables."""
    bound = _texts(task)
    return [] if bound is None else _whole(bound, REST)


def unit_bytes(task: Task, seed: int, split: TaskSplit, index: int) -> bytes:
    """Return a unit of any task as bytes. Table values have nine significant digits."""
    bound = ready(task, split)
    if isinstance(bound, TextTask):
        return bound.unit(seed, split, index).rows
    x, y = bound.unit(seed, split, index)
    values = np.column_stack([x, y]).tolist()
    return "".join(" ".join(f"{value:.9g}" for value in row) + "\n" for row in values).encode()


def check_declarations(task: Task, seed: int) -> None:
    """Check the declarations, the help texts of settings, and the names of shifted splits."""
    name = "declarations"
    check_declared(task, name, revision=int, source=str, unit_rows=int, digest=str)
    for key, one in settings_in(type(task)).items():
        what = f"help of {key}: got {one.help!r}, expected a sentence"
        require(task, name, one.help.endswith("."), what)
    for split in task.shifted or ():
        good = is_split(split) and split.startswith("ood-")
        require(task, name, good, f"shifted: got {split!r}, expected ood-...")
    for member in ("possible", "own_splits", "shifted", "files"):
        getattr(task, member)
    check_settings(TASKS, task, name)


def check_worked_example(task: Task, seed: int) -> None:
    """Check that the task's file has an example and that its output is correct."""
    check_examples(task, "worked example")


def check_units(task: Task, seed: int) -> None:
    """Check that a unit depends only on the seed, split and index, and check its row count."""
    name, long = "units", replace(REST, rows=task.unit_rows + 10)
    before, whole, last = (unit_bytes(task, seed + 3, long, index) for index in (1, 0, 1))
    expect(task, name, "the same unit, generated again after another", before == last, True)
    differs = unit_bytes(task, seed + 4, long, 1) != last
    expect(task, name, "another unit for another seed", differs, True)
    wanted, counts = [task.unit_rows, 10], [part.count(b"\n") for part in (whole, last)]
    if task.own_splits is None:
        expect(task, name, "rows", counts, wanted)
    else:  # strata may have fewer rows
        valid = all(0 < count <= most for count, most in zip(counts, wanted, strict=True))
        require(task, name, valid, f"rows: got {counts}, expected at most {wanted}")


def check_rows(task: Task, seed: int) -> None:
    """Check that texts and ids are unique within and across splits, and that counts are valid."""
    if (bound := _texts(task)) is None:
        return
    name = "rows"
    rows = [*_whole(bound, TEST), *_rest(task)]
    expect(task, name, "rows", len(rows), TEST.rows + REST.rows)
    for column in ("text", "id"):
        distinct = {getattr(row, column) for row in rows}
        expect(task, name, f"distinct values of {column}", len(distinct), len(rows))
    named = all(isinstance(row.id, str) and row.split is None for row in rows)
    require(task, name, named, "got a row without an id or with a split, expected neither")
    for key, count in bound.unit(0, TEST, 0).counts.items():
        good = re.fullmatch(r"(?!rows)[a-z_]+", key) and count >= 0
        require(task, name, good, f"counts: got {key!r}: {count}, expected a name for a table")


def check_targets(task: Task, seed: int) -> None:
    """Check that each text has targets or a label, and that each target is exactly one number."""
    rows = _rest(task)
    texts = [row.text.encode() for row in rows]
    bounds = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    data = np.frombuffer(b"".join(texts), np.uint8)
    starts, ends, counts = (column.tolist() for column in scan(data, bounds, NumeralPolicy()))
    index = 0
    for row, text, offset, count in zip(rows, texts, bounds.tolist(), counts, strict=False):
        numbers = {
            (len(text[: start - offset].decode()), len(text[: end - offset].decode()))
            for start, end in zip(starts[index:][:count], ends[index:][:count], strict=True)
        }
        index += count
        require(task, "targets", row.targets or row.label, f"{row.text!r}: got nothing to predict")
        for spans in (row.targets or {}).values():
            for start, end in spans:
                what = f"{row.text!r}: got the target {row.text[start:end]!r}, expected one number"
                require(task, "targets", (start, end) in numbers, what)


def check_derived(task: Task, seed: int) -> None:
    """Check that a task bound to an artifact can be pickled, and that its facts fit in JSON."""
    if not isinstance(task, DerivedTask):
        return
    bound, facts = task.over(_ARTIFACTS[task.reads](), [TEST, REST])
    elsewhere = pickle.loads(pickle.dumps(bound))
    same = elsewhere.unit(5, TEST, 0) == bound.unit(5, TEST, 0)
    expect(task, "derived", "the same unit in another process", same, True)
    kept = json.loads(json.dumps(facts)) == facts != {}
    require(task, "derived", kept, f"facts: got {facts}, expected some that JSON keeps")
    expect(task, "derived", "unit_rows", bound.unit_rows, task.unit_rows)


def check_tables(task: Task, seed: int) -> None:
    """Check that tables are finite float64 and have all features and distinct targets."""
    if not isinstance(task, TableTask):
        return
    name, (x, y) = "tables", task.unit(0, REST, 0)
    shape = (REST.rows, len(task.features))
    expect_array(task, "unit", x, shape, dtype="float64", finite=True)
    expect_array(task, "unit", y, shape[:1], dtype="float64", finite=True)
    expect(task, name, "names", len({"y", "split", *task.features}), 2 + len(task.features))
    for note in task.notes:
        require(task, name, note and "\n" not in note, f"notes: got {note!r}, expected a sentence")
    long = replace(REST, rows=task.unit_rows + 100)
    parts = [task.unit(0, TEST, 0)[1], *(task.unit(0, long, k)[1] for k in (0, 1))]
    every: Any = np.concatenate(parts)
    distinct = len(np.unique(every))
    expect(task, name, "distinct targets of two splits and two units", distinct, len(every))


def check_digest(task: Task, seed: int) -> None:
    """Check that the rows with default settings have the declared digest."""
    try:
        plain = type(task)()
    except TypeError:  # a setting has no default
        plain = task
    got = hashlib.sha256(unit_bytes(plain, 0, TRAIN, 0)).hexdigest()[:16]
    message = f"digest: got {got!r}, expected {plain.digest!r}. If the rows should differ from "
    message += f"those of revision {plain.revision}, increase it and set digest to the new value"
    require(task, "digest", got == plain.digest, message)


def check(task: Task, seed: int = 0) -> list[CheckResult]:
    """Run every check.

    Raises UsageError if this module lacks an example of the kind of artifact that the task reads.
    """
    if isinstance(task, DerivedTask) and task.reads not in _ARTIFACTS:
        raise UsageError(
            f"tasks that read artifacts of kind {task.reads!r} cannot be checked; only those that "
            f"read {', '.join(_ARTIFACTS)}"
        )
    return results(CHECKS, task, seed)


CHECKS = checks_of(__name__)
