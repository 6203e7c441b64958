"""A plugin of pytest: runs the tests that ``$NUMTOK_MUTANTS_TESTS`` lists, in that order, and
writes down in ``$NUMTOK_MUTANTS_FAILED`` which fail."""

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not (listed := os.environ.get("NUMTOK_MUTANTS_TESTS")):
        return
    places = {test: place for place, test in enumerate(Path(listed).read_text().splitlines())}
    config.hook.pytest_deselected(items=[one for one in items if one.nodeid not in places])
    items[:] = sorted(
        (one for one in items if one.nodeid in places), key=lambda one: places[one.nodeid]
    )


def _tell(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.failed:
        with Path(os.environ["NUMTOK_MUTANTS_FAILED"]).open("a") as out:
            out.write(f"{report.nodeid}\n")


pytest_runtest_logreport = pytest_collectreport = _tell
