"""Selection in a sweep, on invented reports."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numtok.stages import eval, train
from numtok.store.store import Store
from numtok.sweeps.file import read_sweep
from numtok.sweeps.runs import Failed, Run
from numtok.sweeps.selection import Choice, Selection
from tests.fakereports import Fake, make
from tests.messages import Says

HEAD = 'data = "a.jsonl"\n[encode]\nscheme = ["p1000", "xval"]\n[train]\n'

#: Returns the error of the run at a point of the axes, or None if the run fails.
Error = Callable[[Mapping[str, str]], float | None]


@dataclass
class World:
    """A stub that makes a report with a given error for each run, and records requested runs."""

    folder: Path
    error: Error
    asked: list[list[Run]] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = Store(self.folder / "store")

    def __call__(self, runs: Sequence[Run]) -> dict[int, Path]:
        self.asked.append(list(runs))
        reports = {}
        for run in runs:
            if (error := self.error(run.point)) is not None:
                name = f"run-{run.index}"
                seed = int(run.point.get("seed", 0))
                fake = Fake(run.point["scheme"], seed, noise=error, count=8, metrics=())
                reports[run.index] = make(self.store, fake, name).path
        return reports

    def choose(self, text: str) -> tuple[list[Run], list[Choice]]:
        path = self.folder / "sweep.toml"
        path.write_text(HEAD + text)
        sweep = read_sweep(path)
        points = [{**one, **other} for one, _ in sweep.encode for other, _ in sweep.train]
        runs = [
            Run(
                index=index, table="", point=point, train=train.Config(""), eval=eval.Config("", "")
            )
            for index, point in enumerate(points)
        ]
        assert sweep.select is not None
        return Selection(
            sweep=sweep, select=sweep.select, evaluate=self, store=self.store, failed=self.failed
        ).choose(runs)


RATES = "lr = [1e-4, 1e-3, 1e-2]\nseed = [0, 1]\n"
SELECT = '[select]\nmetric = "mae"\nover = "lr"\n'


def test_each_scheme_gets_the_rate_of_the_least_mean_error(tmp_path: Path) -> None:
    best = {"p1000": "1e-2", "xval": "1e-3"}
    world = World(tmp_path, lambda at: 1.0 if at["lr"] == best[at["scheme"]] else 5.0)
    chosen, choices = world.choose(RATES + SELECT)
    assert {(run.point["scheme"], run.point["lr"]) for run in chosen} == set(best.items())
    assert len(chosen) == 4  # two schemes, two seeds
    assert [(one.group, one.chosen, one.reached) for one in choices] == [
        ("scheme=p1000", "lr=1e-2", None),
        ("scheme=xval", "lr=1e-3", None),
    ]
    assert choices[0].costs is not None and choices[0].costs.samples == 64_000


def test_the_first_seeds_can_decide_for_all(tmp_path: Path) -> None:
    errors = {("1e-4", "0"): 0.1, ("1e-4", "1"): 9.0}  # the mean is above 3
    world = World(tmp_path, lambda at: errors.get((at["lr"], at["seed"]), 3.0))
    chosen, choices = world.choose(RATES + SELECT + "seeds = 1\n")
    assert {run.point["seed"] for runs in world.asked for run in runs} == {"0"}
    assert {run.point["lr"] for run in chosen} == {"1e-4"}
    assert [run.point["seed"] for run in chosen] == ["0", "1"] * 2
    assert all(one.figure is not None and one.figure < 1 for one in choices)
    _, of_all = World(tmp_path, world.error).choose(RATES + SELECT + "seeds = 5\n")
    assert {one.chosen for one in of_all} == {"lr=1e-3"}


def test_what_decides_is_looked_at_on_the_validation_split_alone(tmp_path: Path) -> None:
    world = World(tmp_path, lambda at: float(at["lr"]))
    chosen, _ = world.choose(RATES + SELECT)
    assert {run.eval.split for runs in world.asked for run in runs} == {"validation"}
    assert {run.eval.split for run in chosen} == {"test"}  # only the chosen rate
    assert {run.point["lr"] for run in chosen} == {"1e-4"}


def test_the_mean_over_seeds_decides_and_not_the_best_seed(tmp_path: Path) -> None:
    errors = {("1e-4", "0"): 0.1, ("1e-4", "1"): 9.0, ("1e-3", "0"): 3.0, ("1e-3", "1"): 3.0}
    world = World(tmp_path, lambda at: errors.get((at["lr"], at["seed"]), 20.0))
    _, choices = world.choose(RATES + SELECT)
    assert {one.chosen for one in choices} == {"lr=1e-3"}


def test_a_metric_that_no_report_has_and_more_of_which_is_better(tmp_path: Path) -> None:
    """Reports keep predictions, so any metric can decide."""
    world = World(tmp_path, lambda at: float(at["lr"]) * 1e3)
    _, choices = world.choose(
        f'{RATES}[select]\nmetric = "kendall-tau"\nover = ["lr"]\nreach = 2\n'.replace(
            "lr = [", "steps = [1, 2]\nlr = ["
        ),
    )
    assert {one.chosen for one in choices} == {"lr=1e-4, steps=2"}
    assert all(one.reached is False and 0.9 < (one.figure or 0) <= 1 for one in choices)


def test_a_candidate_of_which_a_seed_failed_is_out(tmp_path: Path) -> None:
    world = World(
        tmp_path, lambda at: None if (at["lr"], at["seed"]) == ("1e-4", "1") else float(at["lr"])
    )
    chosen, choices = world.choose(RATES + SELECT)
    assert {one.chosen for one in choices} == {"lr=1e-3"}
    assert {run.point["lr"] for run in chosen} == {"1e-3"}


def test_where_all_failed_nothing_is_chosen(tmp_path: Path) -> None:
    world = World(tmp_path, lambda at: None if at["scheme"] == "p1000" else float(at["lr"]))
    chosen, choices = world.choose(RATES + SELECT)
    assert {run.point["scheme"] for run in chosen} == {"xval"}
    assert choices[0] == Choice("scheme=p1000", None, None, None, None)
    assert choices[1].chosen == "lr=1e-4"


def test_why_a_candidate_has_no_figure_is_told(tmp_path: Path, says: Says) -> None:
    world = World(tmp_path, lambda at: float(at["lr"]))
    _, choices = world.choose('lr = [1e-4]\n[select]\nmetric = "nll"\nover = "lr"\n')
    assert [one.chosen for one in choices] == [None, None]
    assert [one.label for one in world.failed] == ["scheme=p1000, lr=1e-4", "scheme=xval, lr=1e-4"]
    says(world.failed[0].problem, "run-0@", "cannot be selected", "nll")


CLIMB = "steps = [10, 20, 40, 80]\nlr = [1e-4, 2e-4, 3e-4, 4e-4, 5e-4]\n"


def test_after_each_budget_the_better_half_goes_on(tmp_path: Path) -> None:
    world = World(tmp_path, lambda at: float(at["lr"]) * 1e4 / float(at["steps"]))
    _, choices = world.choose(CLIMB + SELECT + "reach = 0\n")
    here = [
        [run.point["lr"] for run in runs if run.point["scheme"] == "xval"] for runs in world.asked
    ]
    assert here == [
        ["1e-4", "2e-4", "3e-4", "4e-4", "5e-4"],
        ["1e-4", "2e-4", "3e-4"],
        ["1e-4", "2e-4"],
        ["1e-4"],
    ]
    assert [(one.chosen, one.reached) for one in choices] == [("lr=1e-4, steps=80", False)] * 2


def test_a_scheme_that_has_reached_it_stops_and_the_others_go_on(tmp_path: Path) -> None:
    slow = {"p1000": 4, "xval": 1}
    world = World(tmp_path, lambda at: slow[at["scheme"]] * 100 / float(at["steps"]))
    chosen, choices = world.choose(CLIMB + SELECT + "reach = 4.5\n")
    assert [(one.chosen, one.reached) for one in choices] == [
        ("lr=1e-4, steps=80", True),
        ("lr=1e-4, steps=20", True),
    ]
    schemes = [{run.point["scheme"] for run in runs} for runs in world.asked]
    assert schemes == [{"p1000", "xval"}, {"p1000", "xval"}, {"p1000"}, {"p1000"}]
    assert [run.point["steps"] for run in chosen] == ["80", "20"]


def test_budgets_are_climbed_from_the_smallest_on_however_they_are_listed(tmp_path: Path) -> None:
    world = World(tmp_path, lambda at: 9.0)
    text = CLIMB.replace("[10, 20, 40, 80]", "[80, 9, 10]") + SELECT + "reach = 1\n"
    world.choose(text)
    assert [{run.point["steps"] for run in runs} for runs in world.asked] == [{"9"}, {"10"}, {"80"}]


def test_without_candidates_budgets_alone_are_climbed(tmp_path: Path) -> None:
    world = World(tmp_path, lambda at: 100 / float(at["steps"]))
    text = 'steps = [10, 20, 40]\nseed = [0, 1]\n[select]\nmetric = "mae"\nreach = 5\n'
    _, choices = world.choose(text)
    assert [(one.chosen, one.reached) for one in choices] == [("steps=20", True)] * 2
    assert [len(runs) for runs in world.asked] == [4, 4]


@pytest.mark.parametrize("examples", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_halving_never_leaves_the_best_of_steady_candidates(
    tmp_path_factory: pytest.TempPathFactory, examples: int
) -> None:
    """If the order of candidates is the same at every budget, halving chooses the best one."""

    @settings(max_examples=examples)
    @given(
        st.lists(st.integers(1, 10**6), min_size=3, max_size=9, unique=True),
        st.lists(st.integers(1, 100), min_size=2, max_size=5, unique=True),
    )
    def halve(errors: list[int], budgets: list[int]) -> None:
        check_halving(tmp_path_factory.mktemp("halving"), errors, budgets)

    halve()


def check_halving(folder: Path, errors: list[int], budgets: list[int]) -> None:
    rates = [f"{index + 1}e-4" for index in range(len(errors))]
    size = dict(zip(rates, errors, strict=True))
    world = World(folder, lambda at: size[at["lr"]] / float(at["steps"]))
    text = f"steps = {budgets}\nlr = [{', '.join(rates)}]\n{SELECT}reach = 0\n"
    _, choices = world.choose(text)
    best = min(rates, key=lambda rate: size[rate])
    assert {one.chosen for one in choices} == {f"lr={best}, steps={max(budgets)}"}
