"""What lies beside the tasks. (What every task must do: numtok/data/tasks/_contract.py.)"""

import doctest
from types import ModuleType

import pytest

from numtok.data.tasks import _draws, _seen, _temperature_rows, _templates, _unrepeated, _windows
from numtok.data.tasks.base import TASKS, DerivedTask, TableTask, TextTask


def test_a_task_is_of_one_of_three_kinds() -> None:
    for name in TASKS:
        of = [kind for kind in (TextTask, TableTask, DerivedTask) if issubclass(TASKS[name], kind)]
        assert len(of) == 1


@pytest.mark.parametrize(
    "module",
    [_draws, _seen, _temperature_rows, _templates, _unrepeated, _windows],
    ids=lambda module: module.__name__.rpartition(".")[2],
)
def test_the_examples_beside_the_tasks_are_true(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert (found.failed, bool(found.attempted)) == (0, True)
