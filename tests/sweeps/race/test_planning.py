"""The plan of a race as it is measured on this machine, whatever it says."""

import json
from pathlib import Path

import pytest

from numtok.store.store import Store
from numtok.sweeps.race.progress import RaceProgress
from numtok.sweeps.race.race import Config, run


class Planned(BaseException):
    """Raised when the rounds begin."""


def test_a_plan_is_measured_and_leaves_nothing_but_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", "2")
    path = tmp_path / "rows.jsonl"
    rows = [{"text": f"{k % 19} and {k % 5} make {k % 19 + k % 5}"} for k in range(120)]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    config = Config(
        (str(path),), minutes=0.2, schemes=("xval", "p10"), preset="nano,layers=1,width=16,heads=2",
        jobs=2,
    )  # fmt: skip

    def until_rounds(update: RaceProgress) -> None:
        if update.standings:
            raise Planned

    store = Store(tmp_path / "artifacts")
    with pytest.raises(Planned):
        run(config, store, until_rounds, lambda _: None)
    kinds = sorted({one.kind for one in store.artifacts()})
    assert kinds == ["encoded", "race"]
    [made] = [one for one in store.artifacts() if one.kind == "race"]
    plan = json.loads((made.path / "plan.json").read_bytes())
    assert plan["threads"] == 1
    assert all(one["pace"] > 0 for one in plan["candidates"])
    assert min(plan["last"]["steps"]) >= 1
    assert [one.name for one in (tmp_path / "artifacts").iterdir() if one.name[0] == "."] == []
