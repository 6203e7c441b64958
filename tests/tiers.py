"""Three tiers of tests (unit, integration and slow), and the time that each of them took.

A unit test starts no process and trains nothing, which is checked while it runs. Tests are marked
``integration`` if they run the command line or other processes, or try every fault or many
repetitions. Tests that take minutes are marked ``slow``.
``just quick`` runs the first tier, ``just test`` two, ``just test-all`` three.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from numtok.store.provenance import provenance

QUICK = "not integration and not slow"
#: Folders with only integration tests.
INTEGRATION = {"cli", "pipelines", "stages", "sweeps"}
#: Methods that train, guarded once loaded: importing them here would slow every small run.
_TRAINING = {
    "numtok.training.loop": "Training.learn",
    "numtok.training.trained_table": "TableLearner.advance",
}
_PROCESS = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"}

_in_unit_test = False


def tier(keywords: Any) -> str:
    """Return the tier of a test, by its marks."""
    return next((name for name in ("slow", "integration") if name in keywords), "unit")


def pytest_configure(config: pytest.Config) -> None:
    provenance()  # runs git once per process
    sys.addaudithook(_audit)
    _guard(BaseProcess, "start")


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _in_unit_test and event in _PROCESS:
        pytest.fail(f"{event} in a unit test: mark it integration")


def _guard(kind: type, name: str) -> None:
    """Make this method fail in unit tests."""
    method = getattr(kind, name)

    def call(*arguments: Any, **options: Any) -> Any:
        if _in_unit_test:
            pytest.fail(f"{kind.__name__}.{name} in a unit test: mark it integration")
        return method(*arguments, **options)

    setattr(kind, name, call)


@pytest.fixture(autouse=True)
def _unit(request: pytest.FixtureRequest) -> Iterator[None]:
    global _in_unit_test
    for module in _TRAINING.keys() & sys.modules.keys():
        kind, name = _TRAINING.pop(module).split(".")
        _guard(getattr(sys.modules[module], kind), name)
    _in_unit_test = tier(request.node.keywords) == "unit"
    yield
    _in_unit_test = False


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without selected tests, so that they are not imported."""
    return (config.option.markexpr == QUICK and collection_path.name in INTEGRATION) or None


def pytest_itemcollected(item: pytest.Item) -> None:
    if not INTEGRATION.isdisjoint(item.path.parts):
        item.add_marker("integration")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    seconds: dict[str, float] = defaultdict(float)
    tests: dict[str, set[str]] = defaultdict(set)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[tier(report.keywords)] += report.duration
                tests[tier(report.keywords)].add(report.nodeid)
    for name, total in seconds.items():
        terminalreporter.write_line(
            f"{name}: {len(tests[name]):,} tests, {total:.0f} s over all workers"
        )
