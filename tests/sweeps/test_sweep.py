"""``numtok sweep``: cached runs, isolated failures, and output."""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from numtok.cli.output.sweep import Runs
from numtok.errors import UsageError
from numtok.evaluation.comparison.experiments import ExperimentCosts
from numtok.evaluation.report_files import read
from numtok.reports import REPORT
from numtok.stages import eval, train
from numtok.store.artifact import DATA, ENCODED, MODEL
from numtok.store.engines.local import Workers
from numtok.store.engines.workers import ClusterNode
from numtok.store.store import Store
from numtok.sweeps.file import read_sweep
from numtok.sweeps.parallel import Parallelism, cluster_parallelism, sweep_parallelism
from numtok.sweeps.runs import Run, Runner, RunOutcome, SweepProgress
from numtok.sweeps.sweep import Config, Result, run
from tests.messages import Says
from tests.shell import Shell

DATASET = '[gen]\ntask = "arithmetic"\noperands = 2\nrows = 400\n'
TINY = 'preset = "nano,layers=1,width=16,heads=2"\nbatch = 32\n'
XVAL = f'{DATASET}[encode]\nscheme = "xval"\n[train]\n{TINY}'


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Use one thread: the last digits of a loss depend on the number of threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_THREADS", "1")
        yield


def written(folder: Path, text: str) -> Path:
    path = folder / "sweep.toml"
    path.write_text(text)
    return path


def swept(folder: Path, text: str, jobs: int = 1, *changes: str) -> Result:
    return run(
        Config(str(written(folder, text)), changes=changes, jobs=jobs),
        store_of(folder),
        lambda _: None,
    )


def store_of(folder: Path) -> Store:
    return Store(folder / "artifacts")


def made(folder: Path) -> list[str]:
    """Return the kind and REF of every artifact in the store."""
    return sorted(f"{one.kind}/{one.ref}" for one in store_of(folder).artifacts())


def of_kind(folder: Path, kind: str) -> int:
    return sum(one.startswith(f"{kind}/") for one in made(folder))


def costs(result: Result) -> dict[str, ExperimentCosts]:
    return {one.label: one.costs for one in result.tables[0].comparison.experiments}


# --- runs --------------------------------------------------------------------------------------

GRID = f'{DATASET}[encode]\nscheme = ["p1000", "xval"]\n[train]\n{TINY}steps = 2\nseed = [0, 1]\n'


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """Return a folder with the finished sweep of the grid, not to be modified, and the result."""
    folder = tmp_path_factory.mktemp("grid")
    return folder, swept(folder, GRID)


@pytest.fixture
def after_grid(grid: tuple[Path, Result], tmp_path: Path) -> Path:
    """Return a copy of that folder that may be modified."""
    shutil.copytree(grid[0], tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_every_run_is_made_once_and_found_again(grid: tuple[Path, Result], tmp_path: Path) -> None:
    folder, first = grid
    assert first.failed == [] and first.choices == []
    assert [of_kind(folder, kind) for kind in (DATA, ENCODED, MODEL, REPORT)] == [1, 2, 4, 8]
    (table,) = first.tables
    assert table.label == ""
    assert [(one.label, one.seeds) for one in table.comparison.experiments] == [
        ("p1000", [0, 1]),
        ("xval", [0, 1]),
    ]
    before = made(folder)
    assert swept(folder, GRID) == first
    assert made(folder) == before


def test_ways_of_their_own_stand_in_the_same_table(after_grid: Path) -> None:
    also = '[[also]]\nencode.scheme = "xval"\ntrain.head = "mdn:2"\n'
    (table,) = swept(after_grid, GRID + also).tables
    assert [(one.label, one.seeds) for one in table.comparison.experiments] == [
        ("p1000", [0, 1]),
        ("xval", [0, 1]),
        ("xval, head=mdn:2", [0, 1]),
    ]
    assert [of_kind(after_grid, kind) for kind in (DATA, ENCODED, MODEL)] == [1, 2, 6]


def test_points_that_are_one_experiment_are_compared_once(after_grid: Path) -> None:
    also = '[[also]]\nencode.scheme = "xval"\ntrain.embedder = "scaled"\n'  # the default
    result = swept(after_grid, GRID + also)
    assert result.failed == []
    (table,) = result.tables
    assert [one.seeds for one in table.comparison.experiments] == [[0, 1], [0, 1]]


def test_splits_that_are_an_axis_have_tables_of_their_own(tmp_path: Path) -> None:
    """All models are trained before any is evaluated on a second split, so that parallel runs do
    not wait for each other."""
    splits = '[eval]\nsplit = ["test", "validation"]\n'
    text = XVAL + "steps = 2\nseed = [0, 1]\n" + splits
    told: list[str] = []
    config = Config(str(written(tmp_path, text)), changes=(), jobs=1)
    result = run(config, store_of(tmp_path), lambda one: told.append(one.what))
    assert [what for what in told if what.startswith("seed=")] == [
        "seed=0, split=test",
        "seed=1, split=test",
        "seed=0, split=validation",
        "seed=1, split=validation",
    ]
    assert [(one.label, one.comparison.split) for one in result.tables] == [
        ("split=test", "test"),
        ("split=validation", "validation"),
    ]
    assert of_kind(tmp_path, MODEL) == 2


def test_what_is_there_under_other_names_is_found(tmp_path: Path, numtok: Shell) -> None:
    """A sweep reuses artifacts that single commands made under other names."""
    data = numtok("gen", "arithmetic", "--operands", "2", "--rows", "400", "--name", "mine")
    encoded = numtok("encode", "--scheme", "xval", data.out.strip(), "--name", "his").out.strip()
    options = ["--preset", "nano,layers=1,width=16,heads=2", "--batch", "32", "--steps", "2"]
    model = numtok("train", encoded, *options, "--name", "hers").out.strip()
    report = numtok("eval", model, encoded, "--name", "theirs").out.strip()
    before = made(tmp_path)
    result = swept(tmp_path, XVAL + "steps = 2\n")
    assert made(tmp_path) == before
    assert result.tables[0].comparison.experiments[0].reports == [report]


def test_jobs_make_what_one_makes(grid: tuple[Path, Result], tmp_path: Path) -> None:
    swept(tmp_path, XVAL + "steps = 2\nseed = [0, 1]\n", 2)
    alone, by_two = (
        {f"{one.kind}/{one.ref}": one.manifest.content for one in store_of(folder).artifacts()}
        for folder in (grid[0], tmp_path)
    )
    assert by_two == {ref: content for ref, content in alone.items() if "p1000" not in ref}


def test_a_look_at_what_is_there_makes_no_process_and_reads_no_weights(
    after_grid: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("not needed")

    monkeypatch.setattr("numtok.evaluation.resolved.read_model", refuse)
    monkeypatch.setattr("numtok.store.engines.local.ProcessPoolExecutor", refuse)
    assert swept(after_grid, XVAL + "steps = 2\nseed = [0, 1]\n", jobs=2).failed == []


# --- budgets -----------------------------------------------------------------------------------

BOTH = f'{DATASET}[encode]\nscheme = ["p1000", "xval"]\n[train]\n{TINY}'


def test_equal_steps_are_equal_samples(tmp_path: Path) -> None:
    spent = costs(swept(tmp_path, BOTH + "steps = 4\n"))
    assert {one.samples for one in spent.values()} == {4 * 32}
    assert spent["p1000"].tokens > spent["xval"].tokens


def test_equal_tokens_are_within_one_batch(tmp_path: Path) -> None:
    spent = costs(swept(tmp_path, BOTH + "tokens = 2000\n"))
    longest = 20  # maximum tokens per row
    assert all(2000 <= one.tokens < 2000 + 32 * longest for one in spent.values())
    assert spent["p1000"].samples < spent["xval"].samples


def test_equal_minutes_are_measured_for_each_scheme(tmp_path: Path) -> None:
    spent = costs(swept(tmp_path, BOTH + "minutes = 0.002\n"))
    assert all(one.steps >= 1 for one in spent.values())


def side(folder: Path, budget: str, asked: int | None = None) -> Parallelism:
    path = written(folder, f"{XVAL}{budget}\nseed = [0, 1, 2]\n")
    return sweep_parallelism(read_sweep(path), asked)


def test_jobs_share_the_cores_unless_their_budget_is_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", "8")
    assert side(tmp_path, "steps = 2") == Parallelism(3, 2)  # three runs need at most three jobs
    assert side(tmp_path, "steps = 2", 2) == Parallelism(2, 4)
    assert side(tmp_path, "steps = 2", 1) == Parallelism(1, None)
    monkeypatch.setattr("numtok.store.engines.workers.cores", lambda: 5)
    assert side(tmp_path, "steps = 2", 20) == Parallelism(20, 1)
    with pytest.raises(UsageError, match="--jobs 21 is too many processes for 5 cores"):
        side(tmp_path, "steps = 2", 21)
    alone, two = side(tmp_path, "minutes = 3"), side(tmp_path, "minutes = 3", 2)
    assert [(one.jobs, one.threads) for one in (alone, two)] == [(1, None), (2, 4)]
    says(alone.note, "budget is in minutes")
    says(two.note, "slower", "budget in minutes", "--jobs 1")


def test_runs_on_gpus_have_one_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", "8")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert side(tmp_path, "steps = 2") == Parallelism(2, 4, gpus=["3", "5"])
    assert side(tmp_path, "minutes = 2") == Parallelism(2, 4, gpus=["3", "5"])
    assert side(tmp_path, "steps = 2", 1) == Parallelism(1, None, gpus=["3"])
    assert side(tmp_path, "steps = 2", 3) == Parallelism(3, 2, gpus=["3", "5", "3"])
    says(side(tmp_path, "minutes = 2", 3).note, "slower", "--jobs 2")
    assert side(tmp_path, 'steps = 2\ndevice = "cuda:1"') == Parallelism(1, None)
    assert side(tmp_path, 'steps = 2\ndevice = "cpu"') == Parallelism(3, 2)


def test_runs_on_a_cluster_have_cpus_or_a_gpu_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMTOK_THREADS", raising=False)
    nodes = [ClusterNode("a", 8, 0), ClusterNode("b", 16, 4), ClusterNode("c", 6, 2)]

    def side(budget: str, asked: int | None = None, gpus: bool = True) -> tuple[int, int, bool]:
        path = written(tmp_path, f"{XVAL}{budget}\nseed = [{', '.join(map(str, range(40)))}]\n")
        there = nodes if gpus else [node._replace(gpus=0) for node in nodes]
        found = cluster_parallelism(read_sweep(path), asked, "ray", there)
        assert found.engine == "ray" and not found.gpus and found.threads is not None
        return found.jobs, found.threads, found.gpu

    assert side("steps = 2") == side('device = "cuda"\nsteps = 2') == (6, 3, True)
    assert side('device = "cpu"\nsteps = 2') == side("steps = 2", gpus=False) == (30, 1, False)
    assert side("steps = 2", 4, gpus=False) == (4, 1, False)
    assert side("minutes = 2", gpus=False) == (3, 6, False)  # one job per node
    assert side("minutes = 2") == (6, 3, True)
    monkeypatch.setenv("NUMTOK_THREADS", "8")
    assert side("steps = 2", gpus=False) == (3, 8, False)
    assert side("steps = 2") == (6, 8, True)
    monkeypatch.setenv("NUMTOK_THREADS", "32")  # more than any node has; the engine rejects it
    assert side("steps = 2", gpus=False) == (1, 32, False)
    assert cluster_parallelism(read_sweep(tmp_path / "sweep.toml"), None, "ray", []).jobs == 1


def test_a_run_that_cannot_be_here_may_be_on_a_node(tmp_path: Path) -> None:
    """A run that needs a GPU can run on a cluster node with a GPU."""
    done: list[Run] = []

    class Nodes(Workers):
        def run(self, work: Any, units: Any) -> Any:
            done.extend(units)
            return map(RunOutcome, units, [tmp_path] * len(units))

    one = train.Config("data", device="cuda")
    run = Run(index=0, table="", point={}, train=one, eval=eval.Config("model", "data"))
    side = Parallelism(1, 1, engine="ray", gpu=True)
    told: list[SweepProgress] = []
    runner = Runner(root=tmp_path, parallel=side, engine=Nodes(1), progress=told.append, failed=[])
    assert runner([run]) == {0: tmp_path}
    assert done == [run] and [one.what for one in told] == ["1 run on test", ""]


def test_what_is_under_way_is_told(tmp_path: Path, says: Says) -> None:
    """Progress counts cached and failed runs. An invalid run does not stop the others."""
    told: list[SweepProgress] = []
    path = written(tmp_path, XVAL + "minutes = 0.001\nseed = [0, 1]\n")
    run(Config(str(path)), store_of(tmp_path), told.append)
    assert [(one.what, one.done, one.total) for one in told] == [
        ("data", 0, 0),
        ("encoding", 0, 0),
        ("2 runs on test; one at a time, because the budget is in minutes", 0, 2),
        ("seed=0", 1, 2),
        ("seed=1", 2, 2),
        ("comparing", 0, 0),
    ]
    assert told[3].seconds_left is not None and told[3].seconds_left > 0
    told.clear()
    run(Config(str(path), changes=("train.seed=1",)), store_of(tmp_path), told.append)
    assert told[2] == SweepProgress("1 run on test, 1 cached", 1, 1)
    told.clear()
    changes = ("train.seed=1", "train.lr-end=[0.5, 0, 0.6]")
    result = run(Config(str(path), changes=changes), store_of(tmp_path), told.append)
    assert told[2].what == "3 runs on test, 1 cached, 2 failed"
    assert [one.label for one in result.failed] == ["lr-end=0.5", "lr-end=0.6"]
    for one, failed in zip(told[3:5], result.failed, strict=True):
        assert one.what == f"{failed.label}: {failed.problem}"
        says(
            failed.problem,
            "--lr-end must be at most --lr",
            f"(got {failed.label.partition('=')[2]})",
        )
    assert of_kind(tmp_path, REPORT) == 4


# --- choosing ----------------------------------------------------------------------------------

RATES = "steps = 2\nlr = [1e-5, 1e-2]\nseed = [0, 1]\n"
SELECT = '[select]\nmetric = "signed-log-r2"\nover = ["lr"]\n'
CLIMB = XVAL + RATES.replace("2", "[2, 4]", 1) + SELECT


@pytest.fixture(scope="module")
def rates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """Return a folder with a finished sweep that chose a learning rate, not to be modified, and
    the result."""
    folder = tmp_path_factory.mktemp("rates")
    return folder, swept(folder, XVAL + RATES + SELECT)


@pytest.fixture
def after_rates(rates: tuple[Path, Result], tmp_path: Path) -> Path:
    """Return a copy of that folder that may be modified."""
    shutil.copytree(rates[0], tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_only_what_is_chosen_is_evaluated_on_the_test_split(rates: tuple[Path, Result]) -> None:
    folder, result = rates
    figures: dict[str, dict[float, list[float]]] = {"validation": {}, "test": {}}
    for artifact in store_of(folder).artifacts():
        if artifact.kind == REPORT:
            report = read(artifact).report
            rate = float(str(report.configuration["learning_rate"]))
            value = report.metrics["signed-log-r2"].value
            assert value is not None
            figures[report.split].setdefault(rate, []).append(value)
    mean = {rate: sum(values) / 2 for rate, values in figures["validation"].items()}
    assert len(mean) == 2
    best = max(mean, key=lambda rate: mean[rate])
    assert list(figures["test"]) == [best]
    (choice,) = result.choices
    assert choice.chosen == f"lr={'1e-5' if best == 1e-5 else '1e-2'}"
    assert choice.figure == pytest.approx(mean[best])
    assert len(result.tables[0].comparison.experiments) == 1


def test_a_sweep_ends_in_the_cost_to_reach_an_error(after_rates: Path) -> None:
    (choice,) = swept(after_rates, CLIMB + "reach = -100\n").choices
    assert choice.reached and choice.costs is not None
    assert (choice.costs.steps, choice.costs.samples) == (2, 64)
    assert of_kind(after_rates, MODEL) == 4  # two rates, two seeds
    text = CLIMB.replace("[2, 4]", "[2, 4, 6]")
    (choice,) = swept(after_rates, text + "reach = 0.99999\n").choices
    assert choice.reached is False and choice.costs is not None
    assert choice.costs.steps == 6
    assert of_kind(after_rates, MODEL) == 8  # plus two seeds at two budgets with the better rate


# --- failures ----------------------------------------------------------------------------------


def test_a_training_that_fails_stops_no_other(tmp_path: Path) -> None:
    """Without scaling, the numbers are so large that the loss overflows."""
    rows = [
        {"text": f"at {row}.5e35 m", "split": "test" if row % 5 == 0 else "train"}
        for row in range(1, 20)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    text = (
        f'data = "{tmp_path}/rows.jsonl"\n[encode]\nscheme = "xval"\n'
        f'normalize = ["none", "scale:5"]\n[train]\n{TINY}steps = 20\nseed = [0, 1]\nlr = 0.01\n'
    )
    result = swept(tmp_path, text)
    assert [one.label for one in result.failed] == [
        "normalize=none, seed=0",
        "normalize=none, seed=1",
    ]
    assert {one.problem.exit_code for one in result.failed} == {5}
    assert "the loss is not finite at step " in str(result.failed[0].problem)
    assert result.tables[0].comparison.experiments[0].seeds == [0, 1]


def test_a_head_that_cannot_read_a_scheme_costs_no_training(after_grid: Path) -> None:
    text = BOTH + 'steps = 2\nhead = ["token", "scalar"]\n'
    result = swept(after_grid, text)
    assert [(one.label, one.problem.exit_code) for one in result.failed] == [
        ("scheme=xval, head=token", 2)
    ]
    assert len(result.tables[0].comparison.experiments) == 3
    assert of_kind(after_grid, MODEL) == 4 + 1  # only p1000 with the scalar head is new


def test_a_bug_in_one_run_loses_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numtok: Shell, says: Says
) -> None:
    real = train.run

    def faulty(config: train.Config, *others: Any) -> train.Result:
        if config.seed == 1:
            raise ZeroDivisionError("oh")
        return real(config, *others)

    monkeypatch.setattr(train, "run", faulty)
    written(tmp_path, XVAL + "steps = 2\nseed = [0, 1, 2]\n")
    ran = numtok("sweep", "sweep.toml", "--jobs", "1")
    assert ran.code == 70
    assert "xval (2 seeds)" in ran.out
    assert "Traceback (most recent call last)" in ran.err
    says(ran.err.splitlines()[-1], "seed=1 failed", "bug", "ZeroDivisionError('oh')")


PRODUCTS = XVAL.replace("operands = 2", 'kind = "product"\ndigits = [1, 3]') + "steps = 2\n"


def test_data_that_cannot_be_made_are_kept_apart(tmp_path: Path, says: Says) -> None:
    result = swept(tmp_path, PRODUCTS)
    assert [one.label for one in result.failed] == ["digits=1"]
    says(result.failed[0].problem, "arithmetic,kind=product,digits=1 has only ")
    assert [one.label for one in result.tables] == ["digits=3"]


def test_an_encoding_that_cannot_be_made_is_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "5 1e400"}\n' * 9)
    text = f"""data = "{tmp_path}/rows.jsonl"
        [encode]
        scheme = "p1000"
        on-overflow = ["error", "count"]
        [train]
        {TINY}
        steps = 2
        [eval]
        split = "train"
    """
    result = swept(tmp_path, text)
    assert [one.label for one in result.failed] == ["on-overflow=error"]
    assert len(result.tables) == 1


def test_a_split_that_is_not_there_is_told_before_anything_is_trained(
    tmp_path: Path, says: Says
) -> None:
    text = XVAL.replace("rows = 400\n", 'rows = 400\nsplit = "test=0.1"\n')
    result = swept(tmp_path, text + RATES + SELECT)
    says(result.failed[0].problem, "arithmetic-xval@", "'validation'. Known: test, train")
    assert result.tables == [] and of_kind(tmp_path, MODEL) == 0


def test_a_comparison_that_fails_is_told_and_reports_stay(tmp_path: Path, says: Says) -> None:
    text = XVAL + 'steps = 2\n[compare]\nby = "colour"\n'
    result = swept(tmp_path, text)
    assert [(one.label, one.problem.exit_code) for one in result.failed] == [("", 2)]
    says(result.failed[0].problem, "unknown group 'colour'. Known: ")
    assert of_kind(tmp_path, REPORT) == 2
    assert swept(tmp_path, text, 1, "compare.by=operator").failed == []


# --- the command -------------------------------------------------------------------------------


def test_the_command_shows_a_table_a_data_set(tmp_path: Path, numtok: Shell) -> None:
    written(tmp_path, GRID.replace("operands = 2", "operands = [2, 3]"))
    ran = numtok("sweep", "sweep.toml", "--jobs", "1", "--set", "encode.scheme=xval")
    assert ran.code == 0
    assert re.findall("^== .*", ran.out, re.M) == ["== operands=2", "== operands=3"]
    assert "xval (2 seeds)" in ran.out and "standard deviation over seeds" in ran.out
    assert ran.err.splitlines() == [
        "data operands=2",
        "encoding operands=2",
        "data operands=3",
        "encoding operands=3",
        "4 runs on test; one at a time",
        *(
            f"{index + 1}/4 operands={operands}, seed={seed}"
            for index, (operands, seed) in enumerate([(2, 0), (2, 1), (3, 0), (3, 1)])
        ),
        "comparing",
    ]
    assert max(map(len, ran.out.splitlines())) <= 80
    quiet = numtok("sweep", "sweep.toml", "-q", "--jobs", "1", "--set", "encode.scheme=xval")
    assert (quiet.code, quiet.out, quiet.err) == (0, ran.out, "")
    of_xval = "--set", "encode.scheme=xval", "--html", "page.html"
    marked = numtok("sweep", "sweep.toml", "--format", "md", *of_xval)
    assert re.findall("^## .*", marked.out, re.M) == ["## operands=2", "## operands=3"]
    assert "page in page.html" in marked.err
    page = Path("page.html").read_text()
    assert "operands=2: Leaderboard" in page and "operands=3: Errors" in page


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("quiet", [False, True])
def test_a_terminal_has_a_bar_below_the_lines(monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stderr", stream := _Terminal())
    with Runs(quiet) as show:
        show(SweepProgress("data"))
        show(SweepProgress("8 runs on test", 0, 8))
        show(SweepProgress("scheme=[xval]", 1, 8, 3725.5))
    if quiet:
        assert stream.getvalue() == ""
        return
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert [line for line in ("data\n", "8 runs on test\n") if line not in shown] == []
    assert "1/8 scheme=[xval]\n" in shown
    assert re.search(r"runs ━+╸?╺?━+ 1/8 about 1.03 h left", shown)


def test_what_is_chosen_is_shown_in_every_format(after_rates: Path, numtok: Shell) -> None:
    written(after_rates, CLIMB + "reach = 0.99999\n")
    ran = numtok("sweep", "sweep.toml", "--jobs", "1")
    assert ran.code == 0
    assert ran.out.startswith(
        "cost to reach signed-log-r2 1 - 1e-5 (validation split, mean over seeds)\n"
    )
    assert re.search(r"^all +lr=1e-[25], steps=4 .* NO ", ran.out, re.M)
    rows = list(csv.DictReader(io.StringIO(numtok("sweep", "sweep.toml", "--format", "csv").out)))
    assert [row["kind"] for row in rows[:5]] == ["chosen", *["cost, not reached"] * 4]
    assert [row["metric"] for row in rows[:5]] == [
        *("signed-log-r2", "samples", "tokens", "flops", "train-seconds")
    ]
    assert rows[1]["figure"] == "128.0" and rows[1]["value"].endswith("steps=4")
    assert {row["kind"] for row in rows[5:]} == {"experiment", "baseline", "cost"}
    found = json.loads(numtok("sweep", "sweep.toml", "--json").out)
    assert found["schema"] == 1
    assert found["select"]["reach"] == 0.99999
    assert found["chosen"][0]["reached"] is False
    assert found["chosen"][0]["costs"]["samples"] == 128
    assert found["tables"][0]["comparison"]["numbers"] == 40
    assert found["failed"] == []


def test_the_best_is_shown_without_anything_to_reach(after_rates: Path, numtok: Shell) -> None:
    ran = numtok("sweep", "sweep.toml", "--jobs", "1")
    assert ran.out.startswith("the best (validation split, mean over seeds)\n")
    heading, row = (line.split() for line in ran.out.splitlines()[1:4:2])
    assert row[heading.index("examples") - len(heading)].isdigit()
    rows = csv.DictReader(io.StringIO(numtok("sweep", "sweep.toml", "--format", "csv").out))
    assert [row["kind"] for row in rows][:2] == ["chosen", "cost"]


def test_failures_are_told_and_the_exit_code_is_theirs(
    tmp_path: Path, numtok: Shell, says: Says
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "from 3 to 5"}\n' * 40)
    written(
        tmp_path,
        f'data = "rows.jsonl"\n[encode]\nscheme = "xval"\nsplit = "validation=0.3,test=0.3"\n'
        f'[train]\n{TINY}steps = 2\nobjective = ["mlm", "mlm:targets"]\nseed = [0, 1]\n',
    )
    ran = numtok("sweep", "sweep.toml", "--jobs", "1")
    assert ran.code == 3
    assert "xval (2 seeds)" in ran.out
    told = "objective=mlm:targets, seed=0 and 1 more failed", "rows-xval@", "another --objective"
    says(ran.err.splitlines()[-1], *told)
    found = json.loads(numtok("sweep", "sweep.toml", "--jobs", "1", "--json", "-q").out)
    assert [(one["label"], one["code"]) for one in found["failed"]] == [
        ("objective=mlm:targets, seed=0", 3),
        ("objective=mlm:targets, seed=1", 3),
    ]


def test_what_is_not_understood_is_one_line(tmp_path: Path, numtok: Shell, says: Says) -> None:
    written(tmp_path, XVAL)
    for words, told in (
        (["no.toml"], ["no.toml: file not found"]),
        (["sweep.toml", "--jobs", "0"], ["--jobs must be at least 1 (got 0)"]),
        (["sweep.toml", "--set", "x"], ["--set must be TABLE.KEY=VALUE", "'x'"]),
        (["sweep.toml", "--set", "train.step=3"], ["[train] of sweep.toml 'step'", "'steps'?"]),
    ):
        ran = numtok("sweep", *words)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), words
        says(ran.err, "numtok: ", *told)


def test_a_sweep_where_all_failed_shows_no_table(tmp_path: Path, numtok: Shell, says: Says) -> None:
    written(tmp_path, PRODUCTS)
    ran = numtok("sweep", "sweep.toml", "--set", "gen.digits=1")
    assert (ran.code, ran.out) == (2, "")
    says(ran.err.splitlines()[-1], "numtok: the data failed: ")


def figures_in(text: str) -> list[str]:
    """Return the lines of the table without measured times."""
    return [line for line in text.splitlines() if "seconds" not in line]


#: Eight trainings on rows.csv.
TABLES = """
data = "rows.csv"
[table]
target = "y"
[train]
preset = "mlp,layers=1,width=8"
head = ["riemann:8", "mdn:2"]
epochs = [100, 200]
patience = 0
seed = [0, 1]
"""


@pytest.mark.slow
@pytest.mark.parametrize("file", [GRID.replace("steps = 2", "steps = [150, 300]"), TABLES])
def test_a_sweep_killed_ten_times_ends_in_the_same_table(tmp_path: Path, file: str) -> None:
    rows = [f"{x},{x * x % 37},{'train' if x % 3 else 'test'}" for x in range(600)]
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    words = [sys.executable, "-m", "numtok", "sweep", "sweep.toml", "--jobs", "2", "--format=csv"]
    for folder in (straight, killed):
        folder.mkdir()
        written(folder, file)
        (folder / "rows.csv").write_text("\n".join(["x,y,split", *rows]) + "\n")
    began = time.monotonic()
    wanted = subprocess.run(words, cwd=straight, capture_output=True, text=True)
    whole = time.monotonic() - began
    for kill in range(10):
        process = subprocess.Popen(
            words,
            cwd=killed,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(whole * (kill + 2) / 16)
        # Kill the whole process group or only the parent. Workers exit when their parent dies.
        (os.killpg if kill % 2 else os.kill)(process.pid, signal.SIGKILL)
        process.wait()
    done = subprocess.run(words, cwd=killed, capture_output=True, text=True)
    assert wanted.returncode == done.returncode == 0, done.stderr
    assert figures_in(done.stdout) == figures_in(wanted.stdout)
    assert "r2" in done.stdout
