"""The last round of a race on one split: metrics with intervals, ties, the choice.

The winner is chosen on the validation split and reported on the test split.

What decides is skill over the median of each slot, as in the rounds before; beside it stands skill
over the best of what needs no model. Every interval, of models and of what needs no model, is of a
bootstrap over the samples (clusters of rows where they belong together) and over the seeds, that of
a difference of a paired one. Two are tied where the interval of their difference holds 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from numtok.arrays import Ints
from numtok.evaluation.comparison.experiments import ExperimentCosts, costs_of
from numtok.evaluation.report_files import TARGET, Evaluation, ReportPredictions
from numtok.evaluation.rivals import Rivals
from numtok.metrics.base import METRICS, Predictions, figures_over_seeds
from numtok.registry import spec_of
from numtok.reports import Figure
from numtok.sweeps.race.skill import in_slots, pooled, skill_apart, slot_rows

MEDIAN = "median"  # what is always said by who knows the slot alone
_LIKELIHOOD, _VALID, _ERROR = "interval-nll", "number-generation-ratio", "mae"
_NOTHING = Figure(None, None, None, 0)
#: A model that ties with a better one replaces it only if its steps take at most this fraction of
#: the time: measured paces of equal models differ by some percent from run to run.
CHEAPER = 0.8


class Contestant(msgspec.Struct, frozen=True, kw_only=True):
    """One on the leaderboard: a model with all its seeds, or what needs no model.

    skill, over_baseline
        Over the median of each slot; over the best of what needs no model, of that itself 0. No
        value over what makes no error.
    behind
        The skill of the best model minus this one's; None for that itself.
    tied
        With the best model.
    log_likelihood
        Mean log-probability of a number to the digits that it is written with, in nats.
    errors
        Mean absolute error by slot, in its units.
    invalid
        Share of the numbers without a valid prediction.
    pace, rate
        Seconds a step, or an epoch, as planned, and the learning rate; None without a model.
    costs
        Mean over the seeds; None without a model.
    """

    label: str
    is_model: bool = False
    skill: Figure
    over_baseline: Figure
    behind: Figure | None
    tied: bool
    log_likelihood: Figure = _NOTHING
    errors: dict[str, Figure]
    invalid: Figure
    pace: float | None = None
    rate: float | None = None
    costs: ExperimentCosts | None = None
    models: list[str] = []
    reports: list[str] = []


class Leaderboard(msgspec.Struct, frozen=True, kw_only=True):
    """All that were in the last round, the best first.

    clusters
        Of rows that belong together, over which intervals are; None where rows stand for
        themselves.
    baseline
        The best of what needs no model.
    best
        The model with the highest skill on this split.
    winner
        The choice: see :func:`choice`.
    notes
        Why baselines are missing.
    """

    split: str
    numbers: int
    clusters: int | None
    slots: list[str]
    places: list[Contestant]
    baseline: str
    best: str
    winner: str
    notes: list[str] = []

    def place(self, label: str) -> Contestant:
        """The one that is called so."""
        return next(one for one in self.places if one.label == label)


class Finalist(NamedTuple):
    """A model of the last round, and the evaluation of each seed."""

    label: str
    pace: float
    rate: float
    evaluations: list[Evaluation]


def leaderboard(
    finalists: Sequence[Finalist],
    rivals: Rivals | None,
    guesses: Mapping[str, float],
    target: str | None,
    winner: str | None = None,
) -> Leaderboard:
    """Compare at least one finalist with rivals that predict the same rows; with None, only with
    the median.

    ``guesses`` are the medians by field. ``winner`` is the choice if it is made already; None
    chooses by these predictions. Rows that each seed held back for itself differ between seeds;
    they are pooled. Raises DataError where reports are not of the same numbers.
    """
    read = {
        one.label: [ReportPredictions.read(each).of_target(target) for each in one.evaluations]
        for one in finalists
    }
    if any(not some[0].same_rows(other) for some in read.values() for other in some[1:]):
        read = {label: [pooled(some)] for label, some in read.items()}
    first, *others = (each for some in read.values() for each in some)
    for other in others:
        first.check_pairs(other)
    asked = in_slots(first, guesses)
    rows = slot_rows(first, asked)
    judge = _Judge(rows, _aligned(first, asked, rivals, guesses[""]))
    answers = {label: [one.answers for one in some] for label, some in read.items()}
    skills = {label: judge.skill(some) for label, some in answers.items()}
    best = max(skills, key=lambda label: _value(skills[label]))
    models = [
        replace(
            judge.place(
                one.label, answers[one.label], None if one.label == best else answers[best]
            ),
            is_model=True,
            log_likelihood=_negative(_over_seeds(_LIKELIHOOD, answers[one.label])),
            pace=one.pace,
            rate=one.rate,
            costs=costs_of(one.evaluations),
            models=[each.report.model for each in one.evaluations],
            reports=[each.ref for each in one.evaluations],
        )
        for one in finalists
    ]
    baselines = [judge.place(name, [one], answers[best]) for name, one in judge.baselines.items()]
    return Leaderboard(
        split=finalists[0].evaluations[0].report.split,
        numbers=len(first.answers.truth),
        clusters=first.clusters(np.arange(len(first.answers.truth))),
        slots=list(rows),
        places=sorted([*models, *baselines], key=lambda one: (-_value(one.skill), one.label)),
        baseline=judge.baseline,
        best=best,
        winner=winner or choice(models),
        notes=[] if rivals is None else rivals.notes,
    )


def choice(models: Sequence[Contestant]) -> str:
    """Choose the best model, or one that ties with it and is at least 20% cheaper per step.

    From the best on, the most skilled of those that are that much cheaper takes over, as long as
    there are any: paces within 20% of each other never decide.
    """
    # Labels make the choice independent of the order.
    ordered = sorted(models, key=lambda one: (-_value(one.skill), one.label))
    tied = [one for one in ordered if one.tied]
    chosen = tied[0]
    while cheaper := [one for one in tied if _pace(one) <= CHEAPER * _pace(chosen)]:
        chosen = cheaper[0]
    return chosen.label


def _pace(model: Contestant) -> float:
    assert model.pace is not None  # each finalist was measured
    return model.pace


@dataclass(frozen=True, eq=False)
class _Judge:
    """Measures everyone by the same slots and baselines."""

    slots: Mapping[str, Ints]  # which numbers each has
    baselines: Mapping[str, Predictions]  # the median among them

    @cached_property
    def baseline(self) -> str:
        """The best of them, by its skill over the median."""
        return max(
            self.baselines, key=lambda name: _value(self.skill([self.baselines[name]], MEDIAN))
        )

    def skill(self, seeds: Sequence[Predictions], over: str = MEDIAN) -> Figure:
        """Over a baseline, minus that of the baseline itself, which is 0 in every resample."""
        base = self.baselines[over]
        return skill_apart(seeds, [base], base)

    def place(
        self,
        label: str,
        seeds: Sequence[Predictions],
        best: Sequence[Predictions] | None,
    ) -> Contestant:
        """Measure predictions; ``best`` are those of the best model, None if it is this one."""
        median = self.baselines[MEDIAN]
        behind = None if best is None else skill_apart(best, seeds, median)
        return Contestant(
            label=label,
            skill=self.skill(seeds),
            over_baseline=self.skill(seeds, self.baseline),
            behind=behind,
            tied=behind is None or _holds_zero(behind),
            errors={
                name: _over_seeds(_ERROR, [one.take(rows) for one in seeds])
                for name, rows in self.slots.items()
            },
            invalid=_share_invalid(seeds),
        )


def _aligned(
    predictions: ReportPredictions, asked: Predictions, rivals: Rivals | None, median: float
) -> dict[str, Predictions]:
    """The answers of each rival to the questions of a report, ``asked`` in slots; where it says
    nothing, the median of the slot, and of no slot that of all."""
    assert asked.slot_median is not None
    guess = np.where(np.isnan(asked.slot_median), median, asked.slot_median)
    found = {MEDIAN: guess}
    if rivals is not None:
        index = {key: row for row, key in enumerate(rivals.keys)}
        keys = (predictions.table.column(name).to_pylist() for name in ("id", TARGET, "position"))
        rows = [index[key] for key in zip(*keys, strict=True)]
        found |= {name: values[rows] for name, values in rivals.values.items()}
    return {
        name: Predictions(
            asked.truth,
            np.where(np.isfinite(values), values, guess),
            np.isfinite(values),
            sample=asked.sample,
            slot=asked.slot,
            slot_median=asked.slot_median,
        )
        for name, values in found.items()
    }


def _value(figure: Figure) -> float:
    return -np.inf if figure.value is None else figure.value


def _holds_zero(figure: Figure) -> bool:
    """Where an interval is not known nothing is sure."""
    return figure.low is None or figure.high is None or figure.low <= 0 <= figure.high


def _over_seeds(name: str, seeds: Sequence[Predictions]) -> Figure:
    """The mean of a metric over the seeds, with the interval over samples and seeds."""
    metric = METRICS.build(name)
    return figures_over_seeds([metric], seeds)[spec_of(metric)]


def _share_invalid(seeds: Sequence[Predictions]) -> Figure:
    valid = _over_seeds(_VALID, seeds)
    if valid.value is None:
        return valid
    low, high = (None if end is None else 1 - end for end in (valid.high, valid.low))
    return Figure(1 - valid.value, low, high, valid.n)


def _negative(figure: Figure) -> Figure:
    if figure.value is None:
        return figure
    low, high = (None if end is None else -end for end in (figure.high, figure.low))
    return Figure(-figure.value, low, high, figure.n)
