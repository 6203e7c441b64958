"""What every task must do, whichever it is; a new file in data/tasks/ is tested by its name."""

import doctest
from types import ModuleType

import msgspec
import numpy as np
import pytest

from numtok.data.tasks import _draws, _seen, _temperature_rows, _templates, _unrepeated, _windows
from numtok.data.tasks.base import SHARES, TASKS, DerivedTask, TableTask, Task, TaskSplit, TextTask
from numtok.records import FIELD, Row
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


@pytest.mark.parametrize(
    "module",
    [_draws, _seen, _temperature_rows, _templates, _unrepeated, _windows],
    ids=lambda module: module.__name__.rpartition(".")[2],
)
def test_the_examples_beside_the_tasks_are_true(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert (found.failed, bool(found.attempted)) == (0, True)
