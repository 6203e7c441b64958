"""The contract of every engine: the same results, the original errors, and bounded look-ahead."""

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from numtok.errors import DataError, PluginError, StoreError, UsageError
from numtok.plugins import add_plugin_folders
from numtok.registry import import_plugins_from_everywhere
from numtok.stages import encode, gen, profile
from numtok.store.engines.engine import Engine, cluster, connected, engine_for
from numtok.store.store import Store
from numtok.sweeps import sweep
from tests.ray_nodes import ray_cluster
from tests.works import Unpickled, divided, late, seen

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


#: Ray takes seconds to start a process, so tests that need fresh processes are slow tests for Ray.
EVERY = pytest.mark.parametrize("name", ["local", "ray"], indirect=True, scope="module")
LOCAL = pytest.mark.parametrize(
    "name", ["local", pytest.param("ray", marks=pytest.mark.slow)], indirect=True, scope="module"
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Return the address of a cluster whose processes are shared by all tests of this module."""
    with ray_cluster(2) as nodes, connected(f"ray:{nodes.address}"):
        yield nodes.address


@pytest.fixture(scope="module")
def name(request: pytest.FixtureRequest) -> str:
    if request.param == "local":
        return "local"
    return f"ray:{request.getfixturevalue('address')}"


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Engine]:
    """Yield an engine with two processes, and check that it leaves nothing in the store."""
    with engine_for(name, 1, 2, 0, Store(folder / "store").spool) as engine:
        assert engine.count == 2
        yield engine
    assert not list(folder.glob("store/.*"))


@pytest.fixture(scope="module")
def two(name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Yield an engine with two processes that several tests share."""
    with opened(name, tmp_path_factory.mktemp("two")) as engine:
        yield engine


@pytest.fixture
def fresh(name: str, tmp_path: Path) -> Iterator[Engine]:
    with opened(name, tmp_path) as engine:
        yield engine


@EVERY
def test_processes_do_all_works_that_follow_and_keep_what_they_read(two: Engine) -> None:
    two.start(Unpickled, 5)
    for factor in (3, 4):
        work = Unpickled(factor, bytes(1 << 20))
        found = list(two.run(work, range(13)))
        assert sorted(out for *_, out in found) == [factor * n + (1 << 20) for n in range(13)]
        pids = {pid for pid, *_ in found}
        assert os.getpid() not in pids and len(pids) <= 2
        assert len({(pid, copy) for pid, copy, _ in found}) == len(pids)


@EVERY
def test_no_unit_is_no_work(two: Engine) -> None:
    assert list(two.run(Unpickled(1), [])) == list(two.in_order(Unpickled(1), iter([]))) == []


@EVERY
def test_an_error_ends_the_work_as_it_was_raised(two: Engine) -> None:
    with pytest.raises(DataError, match=r"^unit -1 cannot be$") as told:
        list(two.run(Unpickled(1), [1, -1, 2]))
    assert type(told.value) is DataError
    with pytest.raises(ZeroDivisionError) as bug:
        list(two.run(divided, [0, 1, 2]))
    whole = [*getattr(bug.value, "__notes__", ()), str(bug.value.__cause__)]
    assert any("in divided" in text for text in whole)


@LOCAL
def test_the_fault_of_a_plugin_is_told_as_its_fault(fresh: Engine, plugins: Path) -> None:
    (plugins / "schemes/odd.py").write_text("def work(unit):\n    return 1 / unit\n")
    add_plugin_folders([plugins])
    import_plugins_from_everywhere()
    work = importlib.import_module("numtok.encoding.schemes.odd").work
    with pytest.raises(PluginError, match=r"odd.py, line 2, in work: ZeroDivisionError: "):
        list(fresh.run(work, [0, 1, 2]))


@LOCAL
def test_a_process_that_dies_each_time_is_told_in_a_line(
    fresh: Engine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name != "local":
        monkeypatch.setattr("numtok.store.engines.ray.RETRIES", 1)
    with pytest.raises(
        StoreError, match=r"^a worker process died .*\(killed, .*Run the same command again"
    ):
        list(fresh.run(Unpickled(1), [13, 1, 2]))


@LOCAL
def test_results_in_order_come_with_few_units_taken(two: Engine) -> None:
    taken: list[int] = []

    def units() -> Iterator[int]:
        for unit in range(20):
            taken.append(unit)
            yield unit
        raise DataError("no more")

    found, waiting = [], []
    with pytest.raises(DataError, match="no more"):  # only after all earlier results
        for one in two.in_order(late, units()):
            found.append(one)
            waiting.append(len(taken) - len(found))
    assert found == list(range(20))
    assert max(waiting) <= 3
    with pytest.raises(DataError, match=r"^unit -1 cannot be$"):
        list(two.in_order(Unpickled(1), [1, -1, 2]))


@LOCAL
def test_units_stand_where_the_command_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMTOK_TEST", "here")
    (tmp_path / "input").write_text("what is there")
    with opened(name, Path()) as engine:
        found = set(engine.run(seen, ["NUMTOK_TEST"] * 3))
    assert found == {(str(tmp_path), "here", "what is there")}


# --- Ray ---------------------------------------------------------------------------------------


def spool(folder: Path) -> Any:
    return Store(folder / "store").spool


def test_a_node_that_sees_another_store_is_told_at_the_start(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numtok.files.write_atomic", lambda path, data: None)
    engine = engine_for(f"ray:{address}", 1, 2, 0, spool(tmp_path))
    with pytest.raises(StoreError, match=r"does not see the store .*/store .*--store"), engine:
        engine.start(Unpickled, 2)
    assert not list(tmp_path.glob("store/.*"))


def test_a_node_with_another_version_is_told_at_the_start(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numtok.store.engines.ray.__version__", "0.0.7")
    engine = engine_for(f"ray:{address}", 1, 2, 0, spool(tmp_path))
    with pytest.raises(UsageError, match=r"has numtok .*, but this command has 0.0.7"), engine:
        engine.start(Unpickled, 2)


def test_as_many_as_there_is_room_for(address: str, tmp_path: Path) -> None:
    asked = [(1, 2), (2, 1)]
    for cpus, count in asked:
        with cluster(f"ray:{address}", None, spool(tmp_path), cpus) as engine:
            assert engine.count == count
    for cpus, gpu, told in ((3, False, "has 3 CPUs, which"), (1, True, "has 1 CPU and a GPU")):
        with pytest.raises(UsageError, match=f"no node of the Ray cluster {told}"):
            list(cluster(f"ray:{address}", 1, spool(tmp_path), cpus, gpu).run(late, [1]))


# --- commands ----------------------------------------------------------------------------------

SWEEP = """
[gen]
task = "arithmetic"
operands = 2
rows = 200
[encode]
scheme = "xval"
[train]
preset = "nano,layers=1,width=16,heads=2"
device = "cpu"
batch = 32
steps = 2
seed = [0, 1]
"""
Made = dict[str, dict[str, bytes]]


def contents(folder: Path) -> Made:
    """Return the content of every file of every artifact in the store."""
    return {
        f"{one.kind}/{one.ref}": {
            file.path: (one.path / file.path).read_bytes() for file in one.files()
        }
        for one in Store(folder / "store").artifacts()
    }


def quiet(*progress: Any) -> None:
    """Ignore progress."""


def test_data_are_the_same(address: str, tmp_path: Path) -> None:
    made: list[Any] = []
    for engine in ("local", f"ray:{address}"):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        store = Store(folder / "store")
        given: dict[str, Any] = {"engine": engine, "workers": 2}
        data = gen.run(gen.Config("arithmetic", samples=5_000, **given), store, quiet).ref
        for scheme in ("xval", "bpe"):
            encode.run(encode.Config((data,), scheme=scheme, name=scheme, **given), store, quiet)
        told = profile.run(
            profile.Config((data,), schemes=("xval", "p1000"), **given), store, quiet
        )
        made.append((contents(folder), told))
    assert made[0] == made[1]
    assert len(made[0][0]) == 3


@pytest.mark.slow
def test_a_sweep_is_the_same(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    made: list[Made] = []
    for engine in ("local", f"ray:{address}"):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        (folder / "sweep.toml").write_text(SWEEP)
        config = sweep.Config(str(folder / "sweep.toml"), jobs=1, engine=engine)
        told: list[Any] = []
        result = sweep.run(config, Store(folder / "store"), told.append)
        assert not result.failed
        assert [one.done for one in told if one.total] == [0, 1, 2]
        made.append(contents(folder))
    assert made[0] == made[1] and len(made[0]) == 2 + 2 * 2


def command(folder: Path, *words: str, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "numtok", "-q", "--store", "store", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )


def at_work() -> list[psutil.Process]:
    """Return the Ray processes that are running units of numtok."""
    found = []
    for process in psutil.process_iter(["name", "cmdline"]):
        if "ray::_do" in " ".join(process.info["cmdline"] or [process.info["name"] or ""]):
            found.append(process)
    return found


GEN = ("gen", "arithmetic", "--rows", "3000000", "--operands", "4", "--split", "train=1")


@pytest.mark.slow
def test_a_command_finds_the_cluster_and_says_nothing(address: str, tmp_path: Path) -> None:
    few = ("gen", "arithmetic", "--rows", "3000", "--engine", "ray")
    process = command(tmp_path, *few, RAY_ADDRESS=address)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("arithmetic@")


@pytest.mark.slow
@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_process(
    number: signal.Signals, code: int, address: str, tmp_path: Path
) -> None:
    process = command(tmp_path, *GEN, "--engine", f"ray:{address}")
    wait_for(lambda: bool(at_work()) or process.poll() is not None)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert err == f"numtok: {'interrupted' if code == 130 else 'terminated'}\n"
    wait_for(lambda: not at_work())


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_no_cluster_is_told_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason='needs `pip install "numtok[ray]"`')
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)

    def init(address: str, **options: Any) -> None:
        assert address == "auto"
        raise ConnectionError("nobody is there")

    monkeypatch.setattr("ray.init", init)
    monkeypatch.setattr("ray.shutdown", lambda: None)
    for engine, told in (
        ("ray", "not a node of a running Ray cluster"),
        ("ray:127.0.0.1:1", "--engine ray:127.0.0.1:1: no answer"),
    ):
        with pytest.raises(UsageError, match=told):
            engine_for(engine, 1, 2, 0, spool(tmp_path)).start(Unpickled, 2)


def test_a_signal_while_nodes_are_checked_cancels_the_checks_before_disconnecting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason='needs `pip install "numtok[ray]"`')
    from numtok.store.engines import ray as tasks

    class Checking(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            raise KeyboardInterrupt

    class Task:
        def options(self, **_: object) -> "Task":
            return self

        def remote(self, *_: object) -> "Task":
            return self

        def future(self) -> Checking:
            self.check = Checking()
            return self.check

    @contextmanager
    def connection(address: str | None) -> Iterator[None]:
        events.append("connected")
        yield
        events.append("disconnected")

    def cancel(task: Task, force: bool) -> None:
        events.append("canceled")
        task.check.set_result(None)

    events: list[str] = []
    resources = {"CPU": 2}
    node = {"NodeID": "0" * 56, "NodeManagerHostname": "a", "Alive": True, "Resources": resources}
    monkeypatch.setattr(tasks, "connection", connection)
    monkeypatch.setattr("ray.nodes", lambda: [node])
    monkeypatch.setattr("ray.put", lambda content: content)
    monkeypatch.setattr("ray.remote", lambda function: Task())
    monkeypatch.setattr("ray.cancel", cancel)
    with pytest.raises(KeyboardInterrupt), cluster("ray:a:1", 2, spool(tmp_path)) as engine:
        engine.start(Unpickled, 2)
    assert events == ["connected", "canceled", "disconnected"]


# --- three nodes, one of which dies ------------------------------------------------------------


@pytest.mark.slow
def test_a_command_or_a_node_that_dies_costs_time_alone(tmp_path: Path) -> None:
    def receipts() -> int:
        return len(list(tmp_path.glob("store/data/*/.draft*/receipts/*")))

    with ray_cluster(1, 1, 1) as nodes:
        words = (*GEN, "--engine", f"ray:{nodes.address}")
        process = command(tmp_path, *words)
        wait_for(lambda: receipts() > 2)
        process.kill()
        process.communicate()
        wait_for(lambda: not at_work())
        there = receipts()
        process = command(tmp_path, *words)
        wait_for(lambda: receipts() > there + 2)
        lost = max(nodes.list_all_nodes(), key=lambda node: not node.head)
        nodes.remove_node(lost, allow_graceful=False)
        _, err = process.communicate(timeout=300)
        assert (process.returncode, err) == (0, "")
    made = contents(tmp_path)
    alone = command(tmp_path / "store", *GEN)
    assert alone.communicate(timeout=300) and alone.returncode == 0
    assert made == contents(tmp_path / "store")
