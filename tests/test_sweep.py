"""``numtok sweep``: the grid that a file names, selection, halving, failures kept apart."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from numtok.errors import UsageError
from numtok.records import MODEL
from numtok.reports import REPORT
from numtok.stages import gen
from numtok.stages._reports import read
from numtok.stages._sweep_file import read_sweep
from numtok.stages.sweep import Config, Result, run
from numtok.store import Store


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last digits of a loss depend on the number of threads."""
    monkeypatch.setenv("NUMTOK_THREADS", "1")


TINY = 'preset = "nano,layers=1,width=16,heads=2"\nbatch = 32'
DATA = '[gen]\ntask = "arithmetic"\noperands = 2\nsamples = 400\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "sweep.toml"
    path.write_text(text)
    return path


def swept(folder: Path, text: str, jobs: int = 1) -> Result:
    return run(Config(str(written(folder, text)), jobs), store_of(folder), lambda *_: None)


def store_of(folder: Path) -> Store:
    return Store(folder / "store", lambda text: None)


def count(folder: Path, kind: str) -> int:
    return len(list((folder / "store" / kind).glob("*/*/manifest.json")))


# --- the file ----------------------------------------------------------------------------------


def test_a_list_is_an_axis_and_every_combination_a_point(tmp_path: Path) -> None:
    sweep = read_sweep(
        written(
            tmp_path,
            '[gen]\ntask = "arithmetic"\noperands = [2, 3]\nlow = 1.00\nsamples = 50\n'
            '[encode]\nscheme = ["p10", "xval"]\n'
            "[train]\nsteps = 3\nlr = [1e-3, 2e-3]\nseed = [0, 1, 2]\n",
        )
    )
    assert [point for point, _ in sweep.data] == [{"operands": "2"}, {"operands": "3"}]
    assert [point["scheme"] for point, _ in sweep.encode] == ["p10", "xval"]
    assert [(one.learning_rate, one.seed) for _, one in sweep.train] == [
        (rate, seed) for rate in (1e-3, 2e-3) for seed in (0, 1, 2)
    ]
    assert [point for point, _ in sweep.eval] == [{}]
    first = sweep.data[0][1]
    # A number keeps its decimals: of 1.00 a task takes two.
    assert isinstance(first, gen.Config) and first.task == "arithmetic,operands=2,low=1.00"


def test_an_axis_of_two_stages_is_told_by_its_stage(tmp_path: Path) -> None:
    sweep = read_sweep(
        written(
            tmp_path,
            '[gen]\ntask = "arithmetic"\nseed = [1, 2]\n[encode]\nscheme = "p10"\n'
            "[train]\nseed = [3, 4]\n",
        )
    )
    assert list(sweep.data[0][0]) == ["gen.seed"]
    assert sweep.seeds == ["train.seed"]


def test_inputs_that_belong_together_are_a_list_within_the_list(tmp_path: Path) -> None:
    sweep = read_sweep(
        written(
            tmp_path,
            'data = [["train=a.jsonl", "test=b.jsonl"], "c.jsonl"]\n[encode]\nscheme = "p10"\n',
        )
    )
    assert [inputs for _, inputs in sweep.data] == [
        ("train=a.jsonl", "test=b.jsonl"),
        ("c.jsonl",),
    ]


ENCODE = 'data = "a.jsonl"\n[encode]\nscheme = "p10"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("data = ", "FILE cannot be read: Invalid value (at end of document)"),
        (
            "[encod]\n",
            "unknown table in FILE 'encod'; did you mean 'encode'? known: compare, data, encode, "
            "eval, gen, select, train",
        ),
        (
            '[encode]\nscheme = "p10"\n',
            "FILE needs data = INPUT or a table [gen], one of the two: what the schemes are tried "
            "on",
        ),
        (
            f"{ENCODE}[gen]\n",
            "FILE needs data = INPUT or a table [gen], one of the two: what the schemes are tried "
            "on",
        ),
        (
            'data = [3]\n[encode]\nscheme = "p10"\n',
            "FILE: data is an input, a list of them, or a list of lists of inputs that belong "
            "together, got 3",
        ),
        ("[gen]\nsamples = 3\n", "FILE: [gen] needs task, the name of what makes the data"),
        (
            f"{ENCODE}[train]\nstep = 3\n",
            "unknown key in [train] of FILE 'step'; did you mean 'steps'? known: batch, clip, "
            "device, embedder, head, lr, minutes, objective, precision, preset, seed, steps, "
            "tokens, warmup, weight-decay",
        ),
        (
            f'{ENCODE}[train]\nsteps = "many"\n',
            "FILE: [train] steps: Expected `int | null`, got `str`",
        ),
        (
            f"{ENCODE}[train]\nlr = 3\n",
            "--lr 3.0 is not possible; it is above 0 and below 1",
        ),
        (
            f"{ENCODE}[train]\nseed = []\n",
            "FILE: [train] seed = [] is no axis; it needs values, each of them once",
        ),
        (
            f"{ENCODE}[train]\nseed = [1, 1]\n",
            "FILE: [train] seed = [1, 1] is no axis; it needs values, each of them once",
        ),
        (
            f'{ENCODE}[train]\nlr = [1e-3, 2e-3]\n[select]\nmetric = "r3"\nover = ["lr"]\n',
            "unknown metric 'r3'",
        ),
        (
            f'{ENCODE}[train]\nlr = [1e-3, 2e-3]\n[select]\nmetric = "r2"\nover = ["seed"]\n',
            "unknown axis in [select] over of FILE 'seed'; known: lr",
        ),
        (
            f'{ENCODE}[train]\nsteps = 3\n[select]\nmetric = "r2"\nreach = 0.9\n',
            "FILE: [select] reach needs several budgets to try; give [train] steps, tokens or "
            "minutes as a list",
        ),
        (
            f'{ENCODE}[select]\nmetric = "r2"\n',
            "FILE: [select] needs over, the axes of which the best is taken, or reach",
        ),
    ],
)
def test_what_is_not_understood_is_told(text: str, told: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        read_sweep(path)
    assert str(caught.value).replace(str(path), "FILE").startswith(told)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file; check the path"):
        read_sweep(tmp_path / "no.toml")


# --- running -----------------------------------------------------------------------------------

GRID = f"""{DATA}
[encode]
scheme = ["p1000", "xval"]
[train]
{TINY}
steps = [2, 4]
seed = [0, 1]
"""


def test_every_run_is_made_once_and_found_again(tmp_path: Path) -> None:
    first = swept(tmp_path, GRID)
    assert first.failed == [] and first.runs == 8
    assert count(tmp_path, MODEL) == count(tmp_path, REPORT) == 8
    (dataset,) = first.datasets
    labels = [one.label for one in dataset.comparison.experiments]
    assert len(labels) == 4 and all(len(one.seeds) == 2 for one in dataset.comparison.experiments)
    again = swept(tmp_path, GRID)
    assert count(tmp_path, MODEL) == 8
    assert again.datasets == first.datasets


def test_two_jobs_make_what_one_makes(tmp_path: Path) -> None:
    for folder, jobs in (("one", 1), ("two", 2)):
        (tmp_path / folder).mkdir()
        swept(tmp_path / folder, GRID, jobs)
    one, two = (
        {path.parent.name: path.read_bytes() for path in (tmp_path / folder).rglob("report.json")}
        for folder in ("one", "two")
    )
    assert one == two and len(one) == 8


def test_what_fails_is_kept_apart(tmp_path: Path) -> None:
    text = GRID.replace("steps = [2, 4]", 'steps = 2\nobjective = ["mlm:targets", "ar:answers"]')
    result = swept(tmp_path, text)
    assert len(result.datasets[0].comparison.experiments) == 2
    assert [re.sub(" .*", "", one.label) for one in result.failed] == ["scheme=p1000,"] * 2 + [
        "scheme=xval,"
    ] * 2
    assert {one.problem.exit_code for one in result.failed} == {2}


def test_data_that_cannot_be_made_are_kept_apart(tmp_path: Path) -> None:
    text = GRID.replace("operands = 2", "operands = [2, 99]")
    result = swept(tmp_path, text)
    assert [one.label for one in result.failed] == ["operands=99"]
    assert [one.label for one in result.datasets] == ["operands=2"]


# --- choosing ----------------------------------------------------------------------------------

SELECT = f"""{DATA}
[encode]
scheme = ["p1000", "xval"]
[train]
{TINY}
steps = 3
lr = [1e-5, 1e-2]
seed = [0, 1]
[select]
metric = "signed-log-r2"
over = ["lr"]
"""


def figures(folder: Path, split: str) -> dict[tuple[str, float, int], float]:
    """The signed-log R2 of every report of a split, by scheme, rate and seed."""
    store = store_of(folder)
    found = {}
    for artifact in store.artifacts():
        if artifact.manifest.kind != REPORT:
            continue
        report = read(artifact).report
        value = report.metrics["signed-log-r2"].value
        assert value is not None
        if report.split == split:
            rate = float(report.configuration["learning_rate"])
            found[report.scheme, rate, report.seed] = value
    return found


def test_the_best_on_the_validation_split_is_evaluated_on_the_test_split(tmp_path: Path) -> None:
    result = swept(tmp_path, SELECT)
    validation, test = figures(tmp_path, "validation"), figures(tmp_path, "test")
    assert len(validation) == 8 and len(test) == 4
    for pick in result.picks:
        scheme = pick.label.partition("=")[2]
        mean = {
            rate: (validation[scheme, rate, 0] + validation[scheme, rate, 1]) / 2
            for rate in (1e-5, 1e-2)
        }
        best = max(mean, key=lambda rate: mean[rate])
        assert pick.chosen == f"lr={'1e-5' if best == 1e-5 else '1e-2'}"
        assert pick.figure == pytest.approx(mean[best])
        assert {rate for name, rate, _ in test if name == scheme} == {best}
    assert [one.reached for one in result.picks] == [None, None]


@pytest.mark.parametrize(("reach", "reached"), [(-100.0, True), (0.9999, False)])
def test_budgets_are_climbed_until_it_is_reached(
    reach: float, reached: bool, tmp_path: Path
) -> None:
    """Of two rates both are tried at the smallest budget, and the better one goes on."""
    text = SELECT.replace("steps = 3", "steps = [2, 4, 6]").replace('["p1000", "xval"]', '"xval"')
    result = swept(tmp_path, text + f"reach = {reach}\n")
    (pick,) = result.picks
    assert pick.reached is reached
    # Two rates and two seeds at first, one rate and two seeds at each other budget.
    assert count(tmp_path, MODEL) == (4 if reached else 8)
    assert pick.chosen.startswith("steps=2" if reached else "steps=6")
    assert pick.spent is not None and pick.spent.steps == (2 if reached else 6)


# --- the command -------------------------------------------------------------------------------


def numtok(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "numtok", *words], cwd=folder, capture_output=True, text=True
    )


def test_the_command_prints_tables_and_tells_what_failed(tmp_path: Path) -> None:
    text = GRID.replace("steps = [2, 4]", 'steps = 2\nobjective = ["mlm:targets", "ar:answers"]')
    written(tmp_path, text)
    done = numtok(tmp_path, "sweep", "sweep.toml", "--jobs", "1")
    assert done.returncode == 2
    assert "p1000 (2 seeds)" in done.stdout
    assert "numtok: 4 runs of 8 failed; the others stand" in done.stderr
    found: dict[str, Any] = json.loads(numtok(tmp_path, "sweep", "sweep.toml", "--json").stdout)
    assert found["runs"] == 8 and len(found["failed"]) == 4
    assert len(found["data"][0]["comparison"]["experiments"]) == 2


def figures_in(csv: str) -> list[str]:
    """The lines of the table but for clocks."""
    return [line for line in csv.splitlines() if "seconds" not in line]


@pytest.mark.slow
def test_a_sweep_killed_ten_times_ends_in_the_same_table(tmp_path: Path) -> None:
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    command = ["sweep", "sweep.toml", "--jobs", "2", "--format", "csv"]
    for folder in (straight, killed):
        folder.mkdir()
        written(folder, GRID.replace("steps = [2, 4]", "steps = [150, 300]"))
    began = time.monotonic()
    wanted = numtok(straight, *command)
    whole = time.monotonic() - began
    for kill in range(10):
        process = subprocess.Popen(
            [sys.executable, "-m", "numtok", *command],
            cwd=killed,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(whole * (kill + 2) / 16)
        # With its workers, or alone: then they end themselves.
        (os.killpg if kill % 2 else os.kill)(process.pid, signal.SIGKILL)
        process.wait()
    done = numtok(killed, *command)
    assert wanted.returncode == done.returncode == 0, done.stderr
    assert figures_in(done.stdout) == figures_in(wanted.stdout)
    assert "r2" in done.stdout
