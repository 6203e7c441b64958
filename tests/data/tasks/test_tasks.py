"""What every task must do, whichever it is; a new file in data/tasks/ is tested by its name."""

import doctest
import hashlib
import importlib
import json
import pickle
import re
from dataclasses import fields, is_dataclass, replace
from types import ModuleType

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from numtok.data.tasks import _draws, _seen, _temperature_rows, _templates, _unrepeated, _windows
from numtok.data.tasks.base import SHARES, TASKS, DerivedTask, TableTask, Task, TaskSplit, TextTask
from numtok.encoding.texts import Texts
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.scan import scan
from numtok.records import FIELD, Row, is_split
from numtok.registry import settings_of, spec_of
from tests import fakefields

TRAIN = TaskSplit("train", 100)  # with all places: the sample that digests are taken over
TEST = TaskSplit("test", 60, SHARES - SHARES // 10, SHARES)
REST = TaskSplit("train", 300, 0, SHARES - SHARES // 10)
DERIVED = [name for name in TASKS if issubclass(TASKS[name], DerivedTask)]
TEXTS = [name for name in TASKS if issubclass(TASKS[name], TextTask)] + DERIVED
TABLES = [name for name in TASKS if issubclass(TASKS[name], TableTask)]
SOURCES = {FIELD: fakefields.small}  # an artifact of each kind that tasks read: its folder


def ready(name: str, *splits: TaskSplit) -> Task:
    """A task that can make rows of these splits."""
    task = TASKS.build(name)
    return task.over(SOURCES[task.reads](), splits).task if isinstance(task, DerivedTask) else task


def text_task(name: str, *splits: TaskSplit) -> TextTask:
    task = ready(name, *(splits or (TEST, REST)))
    assert isinstance(task, TextTask)
    return task


def table_task(name: str) -> TableTask:
    task = TASKS.build(name)
    assert isinstance(task, TableTask)
    return task


def rows(content: bytes) -> list[Row]:
    return msgspec.json.Decoder(Row).decode_lines(content)


def whole(task: TextTask, split: TaskSplit) -> list[Row]:
    """The rows of all units of a split."""
    units = range(-(-split.rows // task.unit_rows))
    return [row for index in units for row in rows(task.unit(0, split, index).rows)]


def unit(name: str, seed: int, split: TaskSplit, index: int) -> bytes:
    """A unit as bytes, whatever kind of task makes it."""
    task = ready(name, split)
    if isinstance(task, TextTask):
        return task.unit(seed, split, index).rows
    assert isinstance(task, TableTask)
    x, y = task.unit(seed, split, index)
    values = np.column_stack([x, y]).tolist()
    return "".join(" ".join(f"{value:.9g}" for value in row) + "\n" for row in values).encode()


def test_there_are_tasks_of_both_kinds() -> None:
    assert TEXTS and TABLES
    assert sorted(TEXTS + TABLES) == list(TASKS)


@pytest.mark.parametrize("name", TASKS.names())
def test_a_task_gives_what_its_revision_gave(name: str) -> None:
    digest = hashlib.sha256(unit(name, 0, TRAIN, 0)).hexdigest()[:16]
    assert digest == TASKS[name].digest, "raise the task's revision"


@pytest.mark.parametrize("name", TASKS.names())
def test_a_unit_depends_on_nothing_but_seed_split_and_index(name: str) -> None:
    long = replace(REST, rows=TASKS[name].unit_rows + 10)
    first = [unit(name, 3, long, index) for index in (0, 1)]
    again = [unit(name, 3, long, index) for index in (1, 0)]
    assert first == again[::-1]
    assert unit(name, 4, long, 1) != first[1]
    asked, made = [TASKS[name].unit_rows, 10], [part.count(b"\n") for part in first]
    if TASKS.build(name).own_splits is None:
        assert made == asked
    else:  # of a stratum there may be fewer
        assert all(0 < one <= most for one, most in zip(made, asked, strict=True))


@pytest.mark.parametrize("name", TEXTS)
def test_rows_are_those_of_records_and_no_text_or_id_comes_twice(name: str) -> None:
    task = text_task(name)
    made = [row for split in (TEST, REST) for row in whole(task, split)]
    assert len(made) == TEST.rows + REST.rows
    assert len({row.text for row in made}) == len({row.id for row in made}) == len(made)
    assert all(isinstance(row.id, str) and row.split is None for row in made)


@pytest.mark.parametrize("name", TEXTS)
def test_what_a_task_counts_has_a_name_for_a_table(name: str) -> None:
    counts = text_task(name).unit(0, TEST, 0).counts
    assert all(re.fullmatch(r"(?!rows)[a-z_]+", key) and n >= 0 for key, n in counts.items())


@pytest.mark.parametrize("name", TASKS.names())
def test_shifted_splits_have_names_that_say_so(name: str) -> None:
    shifted = TASKS.build(name).shifted or ()
    assert all(is_split(split) and split.startswith("ood-") for split in shifted)


@pytest.mark.parametrize("name", TEXTS)
def test_a_row_has_targets_or_a_label_and_every_target_is_exactly_one_number(name: str) -> None:
    made = whole(text_task(name), REST)
    texts = Texts.of(pa.array([row.text for row in made], pa.string()))
    starts, ends, counts = (found.tolist() for found in scan(*texts, NumeralPolicy()))
    place = 0
    for row, offset, count in zip(made, texts.rows.tolist(), counts, strict=False):
        found = {
            (len(row.text.encode()[: start - offset].decode()), end - start)
            for start, end in zip(starts[place:][:count], ends[place:][:count], strict=True)
        }
        place += count
        assert row.targets or row.label
        for start, end in (span for spans in (row.targets or {}).values() for span in spans):
            assert (start, end - start) in found, row.text


@pytest.mark.parametrize("name", DERIVED)
def test_what_a_derived_task_makes_goes_to_other_processes_and_its_facts_into_a_manifest(
    name: str,
) -> None:
    task = TASKS.build(name)
    assert isinstance(task, DerivedTask)
    made, facts = task.over(SOURCES[task.reads](), [TEST, REST])
    elsewhere = pickle.loads(pickle.dumps(made))
    assert elsewhere.unit(5, TEST, 0) == made.unit(5, TEST, 0)
    assert json.loads(json.dumps(facts)) == facts != {}
    assert made.unit_rows == task.unit_rows


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_as_many_features_as_it_names_and_finite_targets(name: str) -> None:
    task = table_task(name)
    x, y = task.unit(0, REST, 0)
    assert x.shape == (REST.rows, len(task.features)) and y.shape == (REST.rows,)
    assert np.isfinite(x).all() and np.isfinite(y).all()
    assert len({"y", "split", *task.features}) == 2 + len(task.features)
    assert all(note and "\n" not in note for note in task.notes)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_shares_no_target_between_splits_and_units(name: str) -> None:
    task = table_task(name)
    long = replace(REST, rows=task.unit_rows + 100)
    parts = [task.unit(0, TEST, 0)[1], *(task.unit(0, long, k)[1] for k in (0, 1))]
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts))


@pytest.mark.parametrize("name", TASKS.names())
def test_every_setting_has_help_and_is_read_back(name: str) -> None:
    task = TASKS.build(name)
    assert is_dataclass(task)
    assert all(field.metadata["help"].endswith(".") for field in fields(task))
    assert TASKS.build(spec_of(task)) == TASKS.from_settings(settings_of(task)) == task


@pytest.mark.parametrize("name", TASKS.names())
def test_the_examples_of_a_task_are_true(name: str) -> None:
    found = doctest.testmod(importlib.import_module(TASKS[name].__module__))
    assert (found.failed, bool(found.attempted)) == (0, True)


@pytest.mark.parametrize(
    "module",
    [_draws, _seen, _temperature_rows, _templates, _unrepeated, _windows],
    ids=lambda module: module.__name__.rpartition(".")[2],
)
def test_the_examples_beside_the_tasks_are_true(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert (found.failed, bool(found.attempted)) == (0, True)
