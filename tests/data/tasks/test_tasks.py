"""Code around the tasks. (What every task must do: numtok/data/tasks/_contract.py.)"""

import doctest
import pickle

from numtok.data.tasks import _draws, _temperature_rows, _templates, _unrepeated
from numtok.data.tasks.base import TASKS, DerivedTask, TableTask, TextTask
from tests.cases import case


def test_a_task_is_of_one_of_three_kinds() -> None:
    for name in TASKS:
        of = [kind for kind in (TextTask, TableTask, DerivedTask) if issubclass(TASKS[name], kind)]
        assert len(of) == 1


def test_the_examples_beside_the_tasks_are_true() -> None:
    for module in [_draws, _temperature_rows, _templates, _unrepeated]:
        with case(module):
            found = doctest.testmod(module)
            assert (found.failed, bool(found.attempted)) == (0, True)


def test_a_copy_for_another_process_is_the_same_task() -> None:
    """Its units are also the same, because they depend only on the task (see the contract)."""
    for name in TASKS:
        task = TASKS.build(TASKS.checked_at(name))
        assert pickle.loads(pickle.dumps(task)) == task, name
