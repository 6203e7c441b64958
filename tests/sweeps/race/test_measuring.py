"""Measurements before a race, and how many runs are measured in parallel."""

import json
from pathlib import Path
from typing import Any

import pytest

from numtok.errors import UsageError
from numtok.store.engines.workers import ClusterNode
from numtok.store.store import Store
from numtok.sweeps.parallel import race_parallelism
from numtok.sweeps.race import measuring
from numtok.sweeps.race.plan import RaceProgress
from numtok.sweeps.race.race import Config, run

TINY = "nano,layers=1,width=16,heads=2"


class Planned(BaseException):
    """Raised when the rounds begin."""


def planned(folder: Path, times: int = 1, **how: Any) -> tuple[Store, dict[str, Any]]:
    """Race rows of ``times`` repetitions of a short text until the rounds begin, and return the
    store and the plan."""
    path = folder / "rows.jsonl"
    rows = [{"text": f"{k % 19} and {k % 5} make {k % 19 + k % 5} " * times} for k in range(120)]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")

    def until_rounds(update: RaceProgress) -> None:
        if update.standings:
            raise Planned

    store = Store(folder / "artifacts")
    with pytest.raises(Planned):
        split = "validation=0.15,test=0.15"
        run(
            Config((str(path),), preset=TINY, split=split, **how),
            store,
            until_rounds,
            lambda _: None,
        )
    [made] = [one for one in store.artifacts() if one.kind == "race"]
    return store, json.loads((made.path / "plan.json").read_bytes())


@pytest.mark.parametrize(
    ("jobs", "times", "batch"), [(1, 1, 16), pytest.param(2, 90, 8, marks=pytest.mark.slow)]
)
def test_a_plan_is_measured_and_leaves_nothing_but_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, times: int, batch: int
) -> None:
    """The plan is the only artifact besides encodings. Long rows get smaller batches."""
    monkeypatch.setenv("NUMTOK_THREADS", "2")
    store, plan = planned(tmp_path, times, minutes=0.2, schemes=("xval", "p10"), jobs=jobs)
    assert sorted({one.kind for one in store.artifacts()}) == ["encoded", "race"]
    assert plan["threads"] == 2 // jobs
    assert {one["batch"] for one in plan["candidates"]} == {batch}
    assert all(one["pace"] > 0 for one in plan["candidates"])
    assert min(plan["last"]["steps"]) >= 1
    assert [one.name for one in store.root.iterdir() if one.name[0] == "."] == []


def test_what_there_is_no_time_for_is_not_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    monkeypatch.setattr(measuring, "_PREPARING", 0.0)
    schemes = ("numgpt", "p10", "p1000", "digits")
    store, plan = planned(tmp_path, minutes=0.1, schemes=schemes)
    raced = {one["data"] for one in plan["candidates"]}
    assert {one.ref for one in store.artifacts() if one.kind == "encoded"} == raced
    assert (len(raced), plan["left_out"]) == (2, 2)


def test_a_race_has_a_run_on_each_core_as_far_as_its_last_round_has_so_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def side(cores: int, **more: Any) -> tuple[int, int | None]:
        monkeypatch.setenv("NUMTOK_THREADS", str(cores))
        monkeypatch.setattr("numtok.store.engines.workers.cores", lambda: cores)
        found = race_parallelism(Config(("rows.jsonl",), device="cpu", **more), ())
        return found.jobs, found.threads

    assert side(1) == (1, 1)
    assert side(2) == (2, 1)
    assert side(2, jobs=1) == (1, 2)
    assert side(16) == (6, 2)  # two finalists with three seeds each
    assert side(16, seeds=1, jobs=8) == (8, 2)
    with pytest.raises(UsageError, match=r"--jobs 99 is too many processes for 2 cores.*8 at most"):
        side(2, jobs=99)


def test_a_race_on_a_cluster_has_as_much_room_as_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMTOK_THREADS", raising=False)
    nodes = [ClusterNode("a", 8, 0), ClusterNode("b", 16, 4), ClusterNode("c", 6, 2)]

    def side(**more: Any) -> tuple[int, int | None, bool]:
        found = race_parallelism(Config(("rows.jsonl",), engine="ray", **more), nodes)
        assert found.engine == "ray"
        return found.jobs, found.threads, found.gpu

    assert side() == (6, 3, True)
    assert side(device="cpu") == (30, 1, False)
    assert side(device="cpu", jobs=2) == (2, 1, False)
