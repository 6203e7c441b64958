"""A unit test that starts a process or trains fails, and says what to do."""

import os
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import get_context

import pytest

from numtok.training.loop import Training
from numtok.training.trained_table import TableLearner

FORBIDDEN: dict[str, Callable[[], object]] = {
    "subprocess.Popen": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
    "os.fork": os.fork,
    "BaseProcess.start": get_context("spawn").Process(target=print).start,
    "Training.learn": lambda: Training.learn(None),  # type: ignore[arg-type]
    "TableLearner.advance": lambda: TableLearner.advance(None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_unit_test_does_not(what: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=f"{what} in a unit test: mark it integration"):
        FORBIDDEN[what]()


@pytest.mark.integration
def test_others_may() -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)
