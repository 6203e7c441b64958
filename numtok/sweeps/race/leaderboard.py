"""The last round of a race on the test split: figures with intervals, ties, the choice.

Skill is over the best of what needs no model, so 0 is what that reaches. Its interval, and that of
a difference, is of a paired bootstrap over the samples (clusters of rows where they belong
together), the mean over the seeds in each resample; the other figures of a model are means over its
seeds, with the interval of Student's t (of one seed, of the bootstrap). Two are tied where the
interval of their difference holds 0.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from numtok.arrays import Floats
from numtok.evaluation.comparison.experiments import ExperimentCosts, costs_of
from numtok.evaluation.comparison.seeds import seed_statistics
from numtok.evaluation.report_files import TARGET, Evaluation, ReportPredictions
from numtok.evaluation.rivals import Rivals
from numtok.metrics.base import METRICS, Metric, Predictions, figures, paired
from numtok.registry import spec_of
from numtok.reports import Figure
from numtok.sweeps.race.skill import SkillOver, Slots

MEDIAN = "median"  # what is always said by who knows the slot alone
_LIKELIHOOD, _VALID, _ERROR = "interval-nll", "number-generation-ratio", "mae"
_NOTHING = Figure(None, None, None, 0)


class Place(msgspec.Struct, frozen=True):
    """One on the leaderboard: a model with all its seeds, or what needs no model.

    skill
        Over the best of what needs no model; of that itself 0.
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
    pace
        Seconds a step, or an epoch, as planned.
    costs
        Mean over the seeds; None without a model.
    """

    label: str
    is_model: bool
    skill: Figure
    behind: Figure | None
    tied: bool
    log_likelihood: Figure
    errors: dict[str, Figure]
    invalid: Figure
    pace: float | None
    costs: ExperimentCosts | None
    models: list[str]
    reports: list[str]


class Leaderboard(msgspec.Struct, frozen=True):
    """All that were in the last round, the best first.

    baseline
        The best of what needs no model, which skill is over.
    winner
        Of the models tied with the best one, the one with the quickest steps.
    """

    split: str
    numbers: int
    slots: list[str]
    places: list[Place]
    baseline: str
    best: str
    winner: str

    def place(self, label: str) -> Place:
        """The one that is called so."""
        return next(one for one in self.places if one.label == label)


class Finalist(NamedTuple):
    """A model of the last round, and the evaluation of each seed."""

    label: str
    pace: float
    evaluations: list[Evaluation]


def of_target(predictions: ReportPredictions, target: str | None) -> ReportPredictions:
    """Those of one target alone; all for None."""
    if target is None:
        return predictions
    mine = np.array([one == target for one in predictions.table.column(TARGET).to_pylist()])
    return ReportPredictions(
        predictions.ref, predictions.table.filter(mine), predictions.answers.take(mine)
    )


def leaderboard(
    finalists: Sequence[Finalist],
    rivals: Rivals,
    guesses: Mapping[str, float],
    target: str | None,
) -> Leaderboard:
    """Of at least one finalist; ``rivals`` are of the same rows, ``guesses`` the medians by slot.

    Raises DataError where reports are not of the same numbers.
    """
    read = {
        one.label: [of_target(ReportPredictions.read(each), target) for each in one.evaluations]
        for one in finalists
    }
    first, *others = (each for some in read.values() for each in some)
    for other in others:
        first.check_pairs(other)
    slots = Slots.of(first)
    guess = slots.of_each(guesses)
    answers = {label: [one.answers for one in some] for label, some in read.items()}
    baselines = _aligned(first, rivals, guess)
    baseline = _best_baseline(baselines, slots, guess)
    base = baselines[baseline]
    metric = SkillOver(slots, np.abs(base.prediction - base.truth))
    skills = {label: _skill(metric, some, base) for label, some in answers.items()}
    best = max(skills, key=lambda label: _value(skills[label]))
    behind = {
        label: paired(metric, answers[best], some).figure
        for label, some in answers.items()
        if label != best
    }
    models = [
        Place(
            one.label,
            True,
            skills[one.label],
            behind.get(one.label),
            one.label == best or _holds_zero(behind[one.label]),
            _negative(_over_seeds(_LIKELIHOOD, answers[one.label])),
            _errors(slots, answers[one.label]),
            _share_invalid(answers[one.label]),
            one.pace,
            costs_of(one.evaluations),
            [each.report.model for each in one.evaluations],
            [each.ref for each in one.evaluations],
        )
        for one in finalists
    ]
    places = [
        *models,
        *(
            _baseline_place(name, one, base if name != baseline else None, metric, answers[best])
            for name, one in baselines.items()
        ),
    ]
    places.sort(key=lambda one: -_value(one.skill))
    # The first of equals, so that the result does not depend on an order.
    winner = min((one for one in models if one.tied), key=lambda one: (one.pace, one.label))
    return Leaderboard(
        finalists[0].evaluations[0].report.split,
        len(first.answers.truth),
        list(slots.names),
        places,
        baseline,
        best,
        winner.label,
    )


def _aligned(
    predictions: ReportPredictions, rivals: Rivals, guess: Floats
) -> dict[str, Predictions]:
    """The answers of each rival to the questions of a report; where it says nothing, the guess."""
    places = {key: place for place, key in enumerate(rivals.keys)}
    columns = (predictions.table.column(name).to_pylist() for name in ("id", TARGET, "position"))
    rows = [places[key] for key in zip(*columns, strict=True)]
    answers = predictions.answers
    found = {MEDIAN: guess} | {name: values[rows] for name, values in rivals.values.items()}
    return {
        name: Predictions(
            answers.truth,
            np.where(np.isfinite(values), values, guess),
            np.isfinite(values),
            sample=answers.sample,
        )
        for name, values in found.items()
    }


def _best_baseline(baselines: Mapping[str, Predictions], slots: Slots, guess: Floats) -> str:
    """By their skill over the median."""
    truth = baselines[MEDIAN].truth
    metric = SkillOver(slots, np.abs(guess - truth))
    return max(baselines, key=lambda name: metric.plain(baselines[name]))


def _baseline_place(
    name: str,
    answers: Predictions,
    base: Predictions | None,
    metric: Metric,
    best: Sequence[Predictions],
) -> Place:
    """``base`` is None for the one that skill is over."""
    behind = paired(metric, best, [answers]).figure
    skill = Figure(0.0, 0.0, 0.0, len(answers.truth))
    return Place(
        name,
        False,
        skill if base is None else _skill(metric, [answers], base),
        behind,
        _holds_zero(behind),
        _NOTHING,
        _errors(metric.slots, [answers]) if isinstance(metric, SkillOver) else {},
        _share_invalid([answers]),
        None,
        None,
        [],
        [],
    )


def _skill(metric: Metric, seeds: Sequence[Predictions], base: Predictions) -> Figure:
    """Minus that of the reference, which is 0 in every resample."""
    return paired(metric, seeds, [base]).figure


def _value(figure: Figure) -> float:
    return -np.inf if figure.value is None else figure.value


def _holds_zero(figure: Figure) -> bool:
    """Where an interval is not known nothing is sure."""
    return figure.low is None or figure.high is None or figure.low <= 0 <= figure.high


def _over_seeds(name: str, seeds: Sequence[Predictions]) -> Figure:
    """The mean of a metric over the seeds with its interval."""
    metric = METRICS.build(name)
    resamples = 1000 if len(seeds) == 1 else 1
    found = [figures([metric], one, resamples=resamples)[spec_of(metric)] for one in seeds]
    over = seed_statistics(found, metric.bounds, share=metric.share)
    return Figure(over.value, over.low, over.high, over.n)


def _errors(slots: Slots, seeds: Sequence[Predictions]) -> dict[str, Figure]:
    return {
        name: _over_seeds(_ERROR, [one.take(rows) for one in seeds])
        for name, rows in zip(slots.names, slots.rows, strict=True)
    }


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
