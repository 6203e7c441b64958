"""The last round of a race on one split: metrics with intervals, ties, the winner and its accuracy.

The winner is chosen on the validation split and reported on the test split.

The deciding metric is skill over the median of each field, as in earlier rounds; skill over the
best baseline is shown next to it. All intervals come from a bootstrap over samples (or clusters of
rows that belong together) and seeds. Differences are paired. Two models are tied if the interval of
their difference contains 0.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import neg
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from numtok.arrays import Ints
from numtok.evaluation.comparison.experiments import ExperimentCosts, costs_of
from numtok.evaluation.prediction_table import TARGET
from numtok.evaluation.report_files import Evaluation, ReportPredictions
from numtok.evaluation.rivals import Rivals
from numtok.metrics.base import METRICS, Predictions, figures, figures_over_seeds
from numtok.registry import spec_of
from numtok.reports import Figure
from numtok.sweeps.race.skill import field_rows, in_fields, pooled, skill_apart

MEDIAN = "median"  # the baseline that always predicts the median of the field
_LIKELIHOOD, _VALID = "interval-nll", "number-generation-ratio"
ERROR, R2, COVERAGE, WIDTH = "mae", "r2", "conformal-coverage", "conformal-width"
_NOTHING = Figure(None, None, None, 0)
#: A model that ties with a better one replaces it only if its steps take at most this fraction of
#: the time: measured paces of equal models differ by some percent from run to run.
CHEAPER = 0.8


class Contestant(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the leaderboard: a model with all its seeds, or a baseline.

    skill, over_baseline
        Skill over the median of each field, and over the best baseline (0 for that baseline
        itself). Skill is undefined if the reference makes no error.
    behind
        Skill of the best model minus the skill of this entry; None for the best model.
    tied
        True if the entry ties with the best model.
    log_likelihood
        Mean log-probability that the model assigns to a number as written, in nats.
    errors
        Mean absolute error in each field, in the units of the field.
    r2
        R2 over all numbers.
    coverage, width
        Coverage and mean width of the calibrated 90% intervals; None without intervals.
    invalid
        Fraction of the numbers without a valid prediction.
    pace, rate
        Planned seconds per step (or epoch), and the learning rate; None for a baseline.
    costs
        Mean training costs over the seeds; None for a baseline.
    models, reports, seed_skills
        REFs of the model and of the report of each seed, and the skill of each seed on this split.
    """

    label: str
    is_model: bool = False
    skill: Figure
    over_baseline: Figure
    behind: Figure | None
    tied: bool
    log_likelihood: Figure = _NOTHING
    errors: dict[str, Figure]
    r2: Figure = _NOTHING
    coverage: Figure = _NOTHING
    width: Figure = _NOTHING
    invalid: Figure
    pace: float | None = None
    rate: float | None = None
    costs: ExperimentCosts | None = None
    models: list[str] = []
    reports: list[str] = []
    seed_skills: list[float] = []

    @property
    def best_seed(self) -> int:
        """Index of the seed with the highest skill; in a tie, the first."""
        return self.seed_skills.index(max(self.seed_skills))

    @property
    def beats_median(self) -> bool:
        """True if the skill and its interval, if known, are above 0."""
        least = self.skill.value if self.skill.low is None else self.skill.low
        return least is not None and least > 0


class Leaderboard(msgspec.Struct, frozen=True, kw_only=True):
    """All entries of the last round, best first.

    clusters
        Number of clusters of rows that are resampled for intervals; None if rows are independent.
    baseline
        Label of the best baseline.
    best
        Label of the model with the highest skill on this split.
    winner
        Label of the chosen model: see :func:`choice`.
    notes
        Reasons why baselines are missing.
    """

    split: str
    numbers: int
    clusters: int | None
    fields: list[str]
    places: list[Contestant]
    baseline: str
    best: str
    winner: str
    notes: list[str] = []

    def place(self, label: str) -> Contestant:
        """Return the entry with this label."""
        return next(entry for entry in self.places if entry.label == label)

    @property
    def beats_median(self) -> bool:
        """True if a model is significantly better than the median."""
        return any(model.is_model and model.beats_median for model in self.places)


class Finalist(NamedTuple):
    """A model in the last round, with the evaluation and the skill of each seed."""

    label: str
    pace: float
    rate: float
    evaluations: list[Evaluation]
    skills: list[float]


def leaderboard(
    finalists: Sequence[Finalist],
    rivals: Rivals | None,
    guesses: Mapping[str, float],
    predictions_of: Callable[[Evaluation], ReportPredictions],
    winner: str | None = None,
) -> Leaderboard:
    """Return the leaderboard of the finalists (at least one) and the baselines on the same rows.

    rivals
        Predictions of the baselines. If None, the median is the only baseline.
    guesses
        Medians in the train split, as returned by :func:`~numtok.sweeps.race.skill.medians`.
    predictions_of
        Function that reads the predictions of a report.
    winner
        Label of the winner if it was chosen on another split. If None, the winner is chosen from
        these predictions.

    If each seed held out different rows, the predictions of all seeds are pooled. Raises DataError
    if the reports contain predictions for different numbers.
    """
    read = {
        finalist.label: list(map(predictions_of, finalist.evaluations)) for finalist in finalists
    }
    if any(not seeds[0].same_rows(seed) for seeds in read.values() for seed in seeds[1:]):
        read = {label: [pooled(seeds)] for label, seeds in read.items()}
    first, *further = (seed for seeds in read.values() for seed in seeds)
    for predictions in further:
        first.check_pairs(predictions)
    in_each_field = in_fields(first, guesses)
    rows = field_rows(first, in_each_field)
    judge = _Judge(rows, _aligned(first, in_each_field, rivals, guesses[""]))
    answers = {label: [seed.answers for seed in seeds] for label, seeds in read.items()}
    skills = {label: judge.skill(seeds) for label, seeds in answers.items()}
    best = max(skills, key=lambda label: _value(skills[label]))
    models = [
        replace(
            judge.contestant(
                finalist.label,
                answers[finalist.label],
                None if finalist.label == best else answers[best],
            ),
            is_model=True,
            log_likelihood=_turned(_over_seeds(_LIKELIHOOD, answers[finalist.label]), neg),
            pace=finalist.pace,
            rate=finalist.rate,
            costs=costs_of(finalist.evaluations),
            models=[evaluation.report.model for evaluation in finalist.evaluations],
            reports=[evaluation.ref for evaluation in finalist.evaluations],
            seed_skills=finalist.skills,
        )
        for finalist in finalists
    ]
    baselines = [
        judge.contestant(name, [predictions], answers[best])
        for name, predictions in judge.baselines.items()
    ]
    return Leaderboard(
        split=finalists[0].evaluations[0].report.split,
        numbers=len(first.answers.truth),
        clusters=first.clusters(np.arange(len(first.answers.truth))),
        fields=list(rows),
        places=sorted([*models, *baselines], key=lambda entry: (-_value(entry.skill), entry.label)),
        baseline=judge.baseline,
        best=best,
        winner=winner or choice(models),
        notes=[] if rivals is None else rivals.notes,
    )


def choice(models: Sequence[Contestant]) -> str:
    """Return the label of the best model, or of one that ties with it and is at least 20% cheaper
    per step.

    The best model is chosen first. As long as a tied model is at least 20% cheaper than the chosen
    one, the most skilled such model replaces it. Costs within 20% of each other therefore never
    decide.
    """
    # Labels make the choice independent of the order.
    ordered = sorted(models, key=lambda model: (-_value(model.skill), model.label))
    tied = [model for model in ordered if model.tied]
    chosen = tied[0]
    while cheaper := [model for model in tied if _pace(model) <= CHEAPER * _pace(chosen)]:
        chosen = cheaper[0]
    return chosen.label


def _pace(model: Contestant) -> float:
    assert model.pace is not None  # each finalist was measured
    return model.pace


@dataclass(frozen=True, eq=False)
class _Judge:
    """Measures all entries by the same fields and baselines."""

    fields: Mapping[str, Ints]  # indices of the numbers of each
    baselines: Mapping[str, Predictions]  # including the median

    @cached_property
    def baseline(self) -> str:
        """Name of the best baseline, by its skill over the median."""
        return max(
            self.baselines, key=lambda name: _value(self.skill([self.baselines[name]], MEDIAN))
        )

    def skill(self, seeds: Sequence[Predictions], over: str = MEDIAN) -> Figure:
        """Return the skill over a baseline, minus that of the baseline itself, which is 0 in every
        resample.
        """
        base = self.baselines[over]
        return skill_apart(seeds, [base], base)

    def contestant(
        self,
        label: str,
        seeds: Sequence[Predictions],
        best: Sequence[Predictions] | None,
    ) -> Contestant:
        """Measure predictions. ``best`` are the predictions of the best model; None if this is the
        best model."""
        median = self.baselines[MEDIAN]
        behind = None if best is None else skill_apart(best, seeds, median)
        return Contestant(
            label=label,
            skill=self.skill(seeds),
            over_baseline=self.skill(seeds, self.baseline),
            behind=behind,
            tied=behind is None or not behind.excludes_zero,
            errors={
                name: _over_seeds(ERROR, [seed.take(rows) for seed in seeds])
                for name, rows in self.fields.items()
            },
            r2=_over_seeds(R2, seeds),
            coverage=_over_seeds(COVERAGE, seeds),
            width=_over_seeds(WIDTH, seeds),
            invalid=_turned(_over_seeds(_VALID, seeds), lambda share: 1 - share),
        )


def _aligned(
    predictions: ReportPredictions, in_each_field: Predictions, rivals: Rivals | None, median: float
) -> dict[str, Predictions]:
    """Return the predictions of each rival for the numbers of ``in_each_field``. Missing ones are
    replaced by the median of the field, or by the overall median for numbers without a field.
    """
    assert in_each_field.field_median is not None
    guess = np.where(np.isnan(in_each_field.field_median), median, in_each_field.field_median)
    predicted = {MEDIAN: guess}
    if rivals is not None:
        index = {key: row for row, key in enumerate(rivals.keys)}
        keys = (predictions.table.column(name).to_pylist() for name in ("id", TARGET, "position"))
        rows = [index[key] for key in zip(*keys, strict=True)]
        predicted |= {name: values[rows] for name, values in rivals.values.items()}
    aligned = {
        name: Predictions(
            in_each_field.truth,
            np.where(np.isfinite(values), values, guess),
            np.isfinite(values),
            sample=in_each_field.sample,
            field=in_each_field.field,
            field_median=in_each_field.field_median,
        )
        for name, values in predicted.items()
    }
    for name, calibration in ({} if rivals is None else rivals.calibration).items():
        low, high = calibration.intervals(aligned[name].prediction)
        aligned[name] = aligned[name]._replace(interval_low=low, interval_high=high)
    return aligned


def _value(figure: Figure) -> float:
    return -np.inf if figure.value is None else figure.value


def _over_seeds(name: str, seeds: Sequence[Predictions]) -> Figure:
    """Return the mean of a metric over the seeds, with the interval over samples and seeds."""
    metric = METRICS.build(name)
    return figures_over_seeds([metric], seeds)[spec_of(metric)]


def _turned(figure: Figure, turn: Callable[[float], float]) -> Figure:
    """Apply a decreasing function to a figure and the ends of its interval."""
    value, low, high = (
        None if each is None else turn(each) for each in (figure.value, figure.high, figure.low)
    )
    return figure if value is None else Figure(value, low, high, figure.n)


class AccuracyRow(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracy of a model or a baseline, in the units of the target.

    label, seed
        Label on the leaderboard, and the seed of the model; None for a baseline.
    coverage, width
        Coverage and mean width of the calibrated 90% intervals. Values are None without
        calibration rows.
    """

    label: str
    seed: int | None
    r2: Figure
    mae: Figure
    coverage: Figure
    width: Figure


def accuracies(board: Leaderboard, model: Predictions, seed: int) -> Iterator[AccuracyRow]:
    """Yield the accuracy of the winner and of the best baseline.

    If the best baseline has no intervals, the accuracy of the best one with intervals follows.
    Yields nothing if there are several fields, whose errors have different units.

    model
        Predictions of the winner with the returned ``seed``.
    """
    if len(board.fields) != 1:
        return
    metrics = [METRICS.build(name) for name in (R2, ERROR, COVERAGE, WIDTH)]
    r2, mae, coverage, width = figures(metrics, model).values()
    yield AccuracyRow(label=board.winner, seed=seed, r2=r2, mae=mae, coverage=coverage, width=width)
    baselines = [board.place(board.baseline)]
    if baselines[0].width.value is None:
        calibrated = [
            each for each in board.places if not each.is_model and each.width.value is not None
        ]
        baselines += calibrated[:1]  # places are sorted by skill
    for each in baselines:
        [error] = each.errors.values()
        yield AccuracyRow(
            label=each.label,
            seed=None,
            r2=each.r2,
            mae=error,
            coverage=each.coverage,
            width=each.width,
        )
