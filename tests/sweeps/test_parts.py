"""``numtok sweep --part K/M``: a job array makes the runs, and a final command compares them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from numtok.errors import UsageError
from numtok.store.artifact import MODEL
from numtok.store.store import Store
from numtok.sweeps.sweep import Config, Result, run
from tests.shell import Shell

SWEEP = """
[gen]
task = "arithmetic"
operands = 2
rows = 200
[encode]
scheme = ["p1000", "xval"]
[train]
preset = "nano,layers=1,width=16,heads=2"
batch = 32
steps = 2
seed = [0, 1]
[eval]
split = ["test", "validation"]
"""
SELECT = '[select]\nover = ["lr"]\nmetric = "mae"\n'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    return path


def swept(file: Path, part: str | None, *changes: str) -> Result:
    return run(
        Config(str(file), changes=changes, jobs=1, part=part),
        Store(file.parent / "artifacts"),
        lambda _: None,
    )


def models(file: Path) -> set[str]:
    artifacts = Store(file.parent / "artifacts").artifacts()
    return {one.ref for one in artifacts if one.kind == MODEL}


def test_parts_share_the_models_and_the_whole_compares_them(file: Path) -> None:
    first = swept(file, "1/3")
    assert (first.left, first.tables, first.failed) == (4, [], [])
    assert len(models(file)) == 2  # of four; each is evaluated on both splits
    assert swept(file, "2/3").left == 2
    last = swept(file, "3/3")
    whole = swept(file, None)
    assert last == whole and last.left == 0
    assert [len(one.comparison.experiments) for one in whole.tables] == [2, 2]
    assert len(models(file)) == 4
    alone = file.parent / "alone" / "sweep.toml"
    alone.parent.mkdir()
    alone.write_text(SWEEP)
    swept(alone, None)
    assert models(alone) == models(file)


def test_what_is_chosen_waits_for_the_candidates_of_all_parts(file: Path) -> None:
    file.write_text(SWEEP.replace('split = ["test", "validation"]', "") + SELECT)
    changes = ("train.lr=[0.001, 0.003]", "train.seed=0")
    assert swept(file, "1/2", *changes).left == 2
    assert swept(file, "2/2", *changes).left == 1  # the test run of the other part is missing
    last = swept(file, "1/2", *changes)
    assert last == swept(file, None, *changes) and len(last.choices) == 2


def test_a_part_says_what_is_left(numtok: Shell, file: Path) -> None:
    ran = numtok("sweep", str(file), "--jobs", "1", "--part", "1/2", "--json")
    assert ran.code == 0
    assert "this part is done; other parts lack 4 runs" in ran.err
    assert json.loads(ran.out)["left"] == 4


@pytest.mark.parametrize("part", ["0/2", "3/2", "1", "a/b", "-1/2", "1/"])
def test_a_part_that_cannot_be_is_refused(part: str) -> None:
    with pytest.raises(UsageError, match=f"--part must be K/M .*'{part}'"):
        replace(Config("x.toml"), part=part)
