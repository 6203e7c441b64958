"""The local engine: one process and several give the same results, and failures are reported.

Tests that apply to every engine are in ``test_engine_contract.py``.
"""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from numtok.errors import StoreError
from numtok.store.engines.local import Workers
from numtok.store.engines.workers import gpu_slots
from tests.works import Unpickled

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Together:
    """Wait until two workers run, then return this worker's CUDA_VISIBLE_DEVICES and whether it
    has imported torch."""

    folder: Path

    def __call__(self, unit: int) -> tuple[str, bool]:
        (self.folder / str(os.getpid())).touch()
        while len(list(self.folder.iterdir())) < 2:
            time.sleep(0.01)
        return os.environ["CUDA_VISIBLE_DEVICES"], "torch" in sys.modules


def children() -> list[int]:
    """Return the process IDs of this process's workers."""
    # If two threads waited for a process, Python may list it after it has ended.
    pids = [child.pid or 0 for child in multiprocessing.active_children()]
    return sorted(filter(psutil.pid_exists, pids))


@pytest.fixture
def two() -> Iterator[Workers]:
    with Workers(2) as workers:
        yield workers
    assert not children()


@pytest.mark.parametrize("count, units", [(1, 5), (2, 1), (2, 0)])
def test_one_worker_or_one_unit_starts_no_process(count: int, units: int) -> None:
    with Workers(count) as workers:
        found = list(workers.run(Unpickled(3), range(units)))
    assert [out for *_, out in found] == [3 * unit for unit in range(units)]
    assert {pid for pid, *_ in found} <= {os.getpid()}


def test_workers_that_are_started_early_do_all_that_follows(two: Workers) -> None:
    two.start(Unpickled, 5)
    started = children()
    assert len(started) == 2
    for factor in (3, 4):
        pids = {pid for pid, *_ in two.run(Unpickled(factor), range(12))}
        assert pids <= set(started)
    assert children() == started


def test_a_work_goes_to_each_worker_once_however_many_units_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Workers(2) as workers:
        sent: list[int] = []
        usual = ProcessPoolExecutor.submit

        def submit(self: ProcessPoolExecutor, call: Any, *arguments: Any) -> Any:
            sent.append(len(pickle.dumps(arguments)))
            return usual(self, call, *arguments)

        monkeypatch.setattr(ProcessPoolExecutor, "submit", submit)
        for factor in (3, 4):  # in the second round, the workers still hold the first work
            found = workers.run(Unpickled(factor, bytes(10_000)), range(8))
            assert sorted(out for *_, out in found) == [10_000 + factor * n for n in range(8)]
        assert max(sent[:8]) < 200 and min(sent[8:]) > 10_000


@pytest.mark.parametrize("units", [0, 1])
def test_none_is_started_early_for_what_may_be_one_unit(two: Workers, units: int) -> None:
    two.start(Unpickled, units)
    assert children() == []


def test_workers_that_die_while_work_is_planned_are_told_of_by_the_work(two: Workers) -> None:
    two.start(Unpickled, 2)
    for pid in children():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(StoreError, match=r"^a worker process died"):
        list(two.run(Unpickled(1), range(4)))


def test_one_unit_in_order_starts_no_process(two: Workers) -> None:
    assert [pid for pid, *_ in two.in_order(Unpickled(1), iter([1]))] == [os.getpid()]


def test_each_worker_sees_a_gpu_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpu_slots(3, 2) == ["0", "1", "0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4, GPU-6f,7")
    assert gpu_slots(4, 3) == ["4", "GPU-6f", "7", "4"]
    with Workers(2, gpu_slots(2, 3)) as workers:
        found = set(workers.run(Together(tmp_path), range(6)))
    assert found == {("4", False), ("GPU-6f", False)}  # set before torch could be imported
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "4, GPU-6f,7"


def test_no_thread_is_left_that_python_would_wake_at_its_exit() -> None:
    before = threading.enumerate()
    with Workers(2) as workers:
        workers.start(Unpickled, 2)
        assert threading.enumerate() != before
    assert threading.enumerate() == before


def test_a_lock_that_a_library_makes_in_a_worker_is_no_warning_at_the_exit(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        """
import multiprocessing
from numtok.store.engines.local import Workers

locks = []

def lock(unit):  # as numcodecs does, when it first reads a field
    locks.append(multiprocessing.Lock())
    return unit

if __name__ == "__main__":
    with Workers(2) as workers:
        print(sorted(workers.run(lock, range(4))))
"""
    )
    done = subprocess.run(
        [sys.executable, str(program)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0, 1, 2, 3]\n", "")


_WATCHING = """
import sys, time
from numtok.store.engines import _ray_cluster
_ray_cluster._agent = lambda: int(sys.argv[1])
with _ray_cluster._agent_watched():
    print("watched", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
@pytest.mark.parametrize(
    ("killed", "seconds", "code", "line"), [(True, 60, 4, b"raylet"), (False, 0, 0, b"")]
)
def test_the_death_of_this_machine_s_ray_agent_ends_a_command_with_a_line(
    killed: bool, seconds: int, code: int, line: bytes
) -> None:
    pytest.importorskip("ray", reason='needs `pip install "numtok[ray]"`')
    with subprocess.Popen(["sleep", "100"]) as agent:
        words = [sys.executable, "-c", _WATCHING, str(agent.pid), str(seconds)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
            assert command.stdout is not None and command.stdout.readline() == b"watched\n"
            if killed:
                agent.kill()
            _, err = command.communicate(timeout=60)
        agent.kill()
    assert command.returncode == code
    assert line in err and err.count(b"\n") == bool(line)
