"""Rounds of a race with a stub runner: scripted errors instead of training."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from numtok.errors import DataError, NumtokError
from numtok.evaluation.prediction_table import TARGET
from numtok.evaluation.report_files import ReportPredictions, read
from numtok.evaluation.rivals import Rivals
from numtok.metrics.base import Predictions
from numtok.reports import Figure
from numtok.settings.race import Config
from numtok.store.store import Store
from numtok.sweeps.race import rounds
from numtok.sweeps.race.leaderboard import Contestant, _over_seeds, choice
from numtok.sweeps.race.plan import Candidate, Plan, Round
from numtok.sweeps.race.reasons import close_calls, reasons_of
from numtok.sweeps.race.rounds import RoundResult, Rounds, RoundsOutcome
from numtok.sweeps.runs import Failed, Run, RunOutcome
from tests.fakereports import Fake, make

#: The noise of each candidate per round and on the test split. None means that training fails.
Noises = Mapping[str, Sequence[float | None]]
Race = Callable[[Noises, Sequence[int]], RoundsOutcome]


@pytest.fixture
def race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Race:
    """Return a function that races candidates with given errors in rounds of given sizes."""
    store = Store(tmp_path / "artifacts")

    def run(noises: Noises, sizes: Sequence[int]) -> RoundsOutcome:
        class StubRunner:
            def __init__(
                self,
                root: Path,
                parallel: Any,
                progress: Any,
                failed: list[Failed],
                each: Callable[[RunOutcome], None],
                engine: Any,
            ) -> None:
                self.each, self.failed = each, failed

            def __call__(self, runs: Sequence[Run]) -> None:
                for one in runs:
                    label, split = one.point["candidate"], one.eval.split
                    number = len(sizes) if split == "test" else (one.train.steps or 0) - 1
                    noise = noises[label][number]
                    if noise is None:
                        problem: NumtokError = DataError(f"{label} diverged")
                        self.failed.append(Failed(label, problem))
                        self.each(RunOutcome(one, None, problem))
                        continue
                    fake = Fake(label, one.train.seed, noise, split=split)
                    report = make(store, fake, f"{label}-{number}-{one.train.seed}")
                    self.each(RunOutcome(one, report.path))

        first = ReportPredictions.read(read(make(store, Fake(), "keys")))
        columns = (first.table[name].to_pylist() for name in ("id", TARGET, "position"))
        median_only = Rivals(list(zip(*columns, strict=True)), {}, [])
        monkeypatch.setattr(rounds, "Runner", StubRunner)
        data = make(store, Fake(), "data")
        count = len(noises)
        every = [
            Round(size, 1.0, [number] * count) for number, size in enumerate(sizes, 1)
        ]  # the stub derives the round from the steps
        plan = Plan(
            candidates=[
                Candidate(
                    label=label,
                    data=data.ref,
                    scheme=label,
                    options={},
                    pace=0.01,
                    rates=[0.002],
                    preset="nano",
                    batch=16,
                    unit="steps",
                )
                for label in noises
            ],
            rounds=every[:-1],
            last=every[-1],
            seeds=2,
            threads=1,
            beside=0.0,
            test="test",
            rows=(None, None),
            guesses={"": 0.0},
            unfit={},
            left_out=0,
        )
        parallel: Any = SimpleNamespace(workers=lambda spool: nullcontext(None), jobs=1)
        config = Config(("rows.jsonl",))
        return Rounds(
            config=config,
            plan=plan,
            data={data.ref: data},
            baselines=median_only,
            store=store,
            parallel=parallel,
            progress=lambda _: None,
        ).run()

    return run


def contestant(label: str, skill: float | None, pace: float, tied: bool = True) -> Contestant:
    known = Figure(skill, skill, skill, 100)
    return Contestant(
        label=label,
        is_model=True,
        skill=known,
        over_baseline=known,
        behind=known,
        tied=tied,
        errors={},
        invalid=known,
        pace=pace,
    )


def models(outcome: RoundsOutcome) -> set[str]:
    return {one.label for one in outcome.test.places if one.is_model}


def test_a_candidate_that_was_cut_does_not_return_for_its_score_in_a_shorter_round(
    race: Race,
) -> None:
    """b survives although its error in round 2 is larger than c's error in round 1."""
    outcome = race(
        {
            "a": (10, 5, 5, 5),
            "b": (20, 60, 20, 20),
            "c": (30, None, 1, 1),
            "d": (40, None, 1, 1),
        },
        (4, 2, 2),
    )
    assert models(outcome) == {"a", "b"}


def test_one_that_was_cut_replaces_one_that_failed(race: Race) -> None:
    outcome = race(
        {
            "a": (10, 5, 5, 5),
            "b": (20, None, 1, 1),
            "c": (30, None, 20, 20),
            "d": (40, None, 1, 1),
        },
        (4, 2, 2),
    )
    assert models(outcome) == {"a", "c"}


def test_validation_chooses_and_the_test_split_only_reports(race: Race) -> None:
    outcome = race({"a": (10, 5, 40), "b": (20, 40, 5)}, (2, 2))
    assert outcome.validation.split == "validation" and outcome.test.split == "test"
    assert outcome.test.best == "b"
    assert outcome.test.winner == outcome.validation.winner == "a"


def test_a_finalist_without_all_its_seeds_is_not_on_the_test_split(race: Race) -> None:
    assert models(race({"a": (10, None, 1), "b": (20, 40, 5)}, (2, 2))) == {"b"}
    with pytest.raises(DataError, match="a diverged"):
        race({"a": (None, 1), "b": (None, 1)}, (2,))


@pytest.mark.parametrize(
    ("paces", "chosen"),
    [
        ((912, 909), "best"),  # measurement noise
        ((1.0, 0.81), "best"),
        ((1.0, 0.8), "m1"),
        ((1.0, 0.5, 0.49), "m1"),  # both are cheaper, and m1 has the higher skill
        ((1.0, 0.7, 0.5), "m2"),
    ],
)
def test_a_tie_is_decided_by_cost_only_where_one_is_a_fifth_cheaper(
    paces: Sequence[float], chosen: str
) -> None:
    tied = [
        contestant("best" if not k else f"m{k}", 0.9 - k / 100, pace=pace)
        for k, pace in enumerate(paces)
    ]
    behind: Contestant = contestant("behind", 0.1, pace=0.001, tied=False)
    assert choice([behind, *reversed(tied)]) == chosen


def test_an_undefined_skill_is_not_the_next_best(race: Race) -> None:
    outcome = race({"a": (10, 5, 5), "worse": (20, 300, 300)}, (2, 2))
    [worse] = [one for one in outcome.validation.places if one.label == "worse"]
    assert worse.skill.value is not None and worse.skill.value < 0 and not worse.tied
    places = [*outcome.validation.places, contestant("unknown", None, pace=1.0, tied=False)]
    validation = msgspec.structs.replace(outcome.validation, places=places)
    plan: Any = SimpleNamespace(seeds=2, candidates=[1, 2, 3], left_out=0)
    _, why_chosen, _ = reasons_of(validation, outcome.test, plan, [])
    assert "worse" in why_chosen and "unknown" not in why_chosen


def test_the_best_seed_has_the_highest_skill_and_is_the_first_of_equals() -> None:
    model = contestant("a", 0.5, pace=1.0)
    skilled = [
        msgspec.structs.replace(model, seed_skills=[0.1, 0.3, second]) for second in (0.2, 0.3)
    ]
    assert [each.best_seed for each in skilled] == [1, 1]


@pytest.mark.parametrize(("winner", "decided"), [("a", "highest skill"), ("b", "cheaper than")])
def test_a_tie_is_explained_by_what_decided_it(race: Race, winner: str, decided: str) -> None:
    outcome = race({"a": (10, 5, 5), "b": (20, 5, 5)}, (2, 2))
    places = [
        msgspec.structs.replace(one, tied=True) if one.is_model else one
        for one in outcome.validation.places
    ]
    validation = msgspec.structs.replace(outcome.validation, places=places, best="a", winner=winner)
    plan: Any = SimpleNamespace(seeds=2, candidates=[1, 2], left_out=0)
    _, why_chosen, _ = reasons_of(validation, outcome.test, plan, [])
    assert f"chosen {'for' if winner == 'a' else 'because'}" in why_chosen
    assert decided in why_chosen


@pytest.mark.parametrize(("noise", "error", "better"), [(150, 20, True), (150, 150, False)])
def test_models_no_better_than_the_median_are_not_recommended(
    race: Race, noise: float, error: float, better: bool
) -> None:
    """A baseline is recommended only if it beats the median."""
    outcome = race({"a": (10, 5, noise), "b": (20, 40, noise)}, (2, 2))
    plan: Any = SimpleNamespace(seeds=2, candidates=[1, 2], left_out=0)
    assert not outcome.test.beats_median
    skill = Figure(1 - error / 100, 0.9 - error / 100, 1.1 - error / 100, 100)
    baseline = msgspec.structs.replace(
        contestant("linear", 0, pace=1.0), is_model=False, skill=skill
    )
    board = msgspec.structs.replace(
        outcome.test, places=[*outcome.test.places, baseline], baseline="linear"
    )
    worth, *_ = reasons_of(outcome.validation, board, plan, [])
    assert worth.startswith("No model is better than predicting the median")
    assert ("linear" in worth) is better and "increase --minutes" in worth


def test_a_model_better_than_the_median_is_recommended(race: Race) -> None:
    outcome = race({"a": (10, 5, 5), "b": (20, 40, 300)}, (2, 2))
    plan: Any = SimpleNamespace(seeds=2, candidates=[1, 2], left_out=0)
    worth, *_ = reasons_of(outcome.validation, outcome.test, plan, [])
    assert outcome.test.beats_median and worth.startswith("a has")


# --- intervals on the leaderboard ---------------------------------------------------------------


def answers(noise: int, size: int = 60) -> Predictions:
    truth = np.arange(float(size))
    return Predictions.of(truth, truth + np.random.default_rng(noise).normal(0, 5, size))


def test_a_model_and_a_baseline_with_equal_answers_have_equal_intervals() -> None:
    """Both are in one column, although a model has several seeds and a baseline has none."""
    for name in ("mae", "r2"):
        baseline, model = (_over_seeds(name, [answers(0)] * seeds) for seeds in (1, 3))
        assert baseline.low is not None and baseline.high is not None
        assert (model.value, model.low, model.high) == pytest.approx(
            (baseline.value, baseline.low, baseline.high)
        )


def test_seeds_that_differ_widen_an_interval() -> None:
    near = answers(1)
    far = near._replace(prediction=near.truth + 20 * (near.prediction - near.truth))
    alike, apart = _over_seeds("mae", [near] * 3), _over_seeds("mae", [near, near, far])
    assert None not in (alike.low, alike.high, apart.low, apart.high)
    assert (apart.low or 0) < (alike.high or 0) < (apart.value or 0) < (apart.high or 0)


# --- rounds within noise ------------------------------------------------------------------------


def notes(folder: Path, noises: dict[str, float | None], survivors: int) -> list[str]:
    """Return the notes on a round in which candidates have these errors, or None for no score."""
    store = Store(folder / "artifacts")
    reports = {
        label: make(store, Fake(label, noise_seed=place, noise=noise), label).ref
        for place, (label, noise) in enumerate(noises.items())
        if noise is not None
    }
    skills = {label: None if noise is None else 1 - noise / 100 for label, noise in noises.items()}
    result = RoundResult(
        seconds=1.0,
        steps=dict.fromkeys(noises, 1),
        tried={},
        rates={},
        skills=skills,
        reports=reports,
    )
    plan: Any = SimpleNamespace(
        rounds=[Round(len(noises), 1.0, [1])], last=Round(survivors, 1.0, [1]), guesses={"": 0.0}
    )
    return list(
        close_calls([result], plan, lambda ref: ReportPredictions.read(read(store.resolve(ref))))
    )


def test_a_race_with_one_round_has_no_close_call(tmp_path: Path) -> None:
    plan: Any = SimpleNamespace(rounds=[], last=Round(2, 1.0, [1]), guesses={"": 0.0})
    assert not list(close_calls([], plan, lambda ref: pytest.fail(ref)))


@pytest.mark.parametrize(
    ("noises", "pair"),
    [
        ({"a": 10, "b": 30, "c": 31, "d": 90}, ("kept b ", "over c ")),
        ({"d": 90, "c": 31, "a": 10, "b": 30}, ("kept b ", "over c ")),
        ({"a": 10, "b": 30, "c": 90, "d": 91}, None),
        ({"a": 10, "b": 30, "c": None, "d": None}, None),
        ({"a": 10, "b": None, "c": 90, "d": 91}, ("kept c ", "over d ")),
    ],
)
def test_a_difference_within_noise_is_noted(
    tmp_path: Path, noises: dict[str, float | None], pair: tuple[str, str] | None
) -> None:
    found = notes(tmp_path, noises, survivors=2)
    assert len(found) == (pair is not None)
    if pair is not None:
        assert found[0].startswith("Round 1 ") and all(part in found[0] for part in pair)
