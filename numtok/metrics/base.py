"""The contract of a metric, and its bootstrap: figures with intervals, and paired differences.

A metric is written as a function of *weights*, how often each number counts: all
ones give the plain figure, and the counts of a resample give its bootstrap
replicate, so one definition serves both. What does not depend on the weights
(errors, sorting, reading literals) is done once, in :meth:`Metric.statistic`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, final

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from numtok.arrays import Bools, Floats, Ints
from numtok.errors import UsageError
from numtok.metrics._bootstrap import Statistic as Statistic
from numtok.metrics._bootstrap import Z as Z
from numtok.metrics._bootstrap import ends as ends
from numtok.metrics._bootstrap import interval, mean_over_seeds, replicates
from numtok.metrics._bootstrap import share as share
from numtok.metrics._weighted import mean
from numtok.registry import Registry, spec_of
from numtok.reports import Figure, Measures

NOT_NEGATIVE, UP_TO_ONE = (0.0, math.inf), (-math.inf, 1.0)  # bounds of many metrics
Values = Floats | Bools
_RESAMPLES, _LEVEL = 1000, 0.95  # of every interval, unless said

# Where a metric overflows or divides by zero it is undefined, which is said in another way.
_quiet = np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore")


class Predictions(NamedTuple):
    """n numbers that were asked for, or the labels of n rows, or n whole answers, and what was
    predicted.

    truth, prediction
        float64[n], finite; a prediction that is not valid is already replaced (train mean). Of
        labels, numbers that stand for them: the same label is the same number.
    valid
        bool[n].
    truth_literal, prediction_literal
        n strings: as written in the text, and as the scheme writes the prediction (None where
        it is not valid). Of labels, the labels; of answers, the true one, and what was generated.
    log_density, crps, quantiles
        float64[n] in nats, float64[n], float64[n, len(reports.QUANTILES)]: of the predictive
        distribution, in the units of the truth.
    sample
        int64[n], which sample (row of the data) each number is of. Numbers of one sample are not
        independent, so the bootstrap draws whole samples; without it, single numbers.
    pit, log_density_tailed, log_interval
        float64[n], of the predictive distribution too: P(X <= truth), and in nats the density
        with stated tails, and the probability of the interval that the truth's digits stand for.
    token_nll
        float64[n], nats: the mean cross-entropy of the truth's tokens.
    outside
        bool[n], the truth lies outside the range of the train split.
    log_range
        float64[n], the logarithm of how wide that range is.
    slot, slot_median
        int64[n], which slot each number is of, the same number for the same one; and float64[n],
        the slot's median in the train split, NaN for numbers of no slot.
    log_probability
        float64[n], nats: of the true label; NaN where it is none that can be predicted.
    measures
        What there are n of.
    """

    truth: Floats
    prediction: Floats
    valid: Bools
    truth_literal: Sequence[str] | None = None
    prediction_literal: Sequence[str | None] | None = None
    log_density: Floats | None = None
    crps: Floats | None = None
    quantiles: Floats | None = None
    sample: Ints | None = None
    pit: Floats | None = None
    log_density_tailed: Floats | None = None
    log_interval: Floats | None = None
    token_nll: Floats | None = None
    outside: Bools | None = None
    log_range: Floats | None = None
    log_probability: Floats | None = None
    slot: Ints | None = None
    slot_median: Floats | None = None
    measures: Measures = "numbers"

    @classmethod
    def of(cls, truth: ArrayLike, prediction: ArrayLike, **columns: Any) -> "Predictions":
        """Answers that are all valid, from anything like an array."""
        made: dict[str, Any] = {
            name: column if name.endswith("literal") else np.asarray(column)
            for name, column in columns.items()
        }
        truths = np.asarray(truth, np.float64)
        valid = np.ones(len(truths), np.bool_)
        return cls(truths, np.asarray(prediction, np.float64), valid, **made)

    @classmethod
    def of_labels(
        cls, truth: Sequence[str], prediction: Sequence[str], **columns: Any
    ) -> "Predictions":
        """Labels. The number that stands for a true one depends on the true ones alone, so it is
        the same whatever was predicted."""
        known = sorted(set(truth))
        known += sorted(set(prediction) - set(known))
        place = {label: float(index) for index, label in enumerate(known)}
        made = cls.of(
            [place[label] for label in truth],
            [place[label] for label in prediction],
            truth_literal=list(truth),
            prediction_literal=list(prediction),
            **columns,
        )
        return made._replace(measures="labels")

    @classmethod
    def of_texts(
        cls, truth: Sequence[str], generated: Sequence[str | None], **columns: Any
    ) -> "Predictions":
        """Whole answers as texts, such as a fraction; None is no answer. The number that stands for
        a true one is the same for the same text, and there is none for what was generated."""
        place = {text: float(index) for index, text in enumerate(sorted(set(truth)))}
        truths = np.array([place[text] for text in truth], np.float64)
        valid = np.array([text is not None for text in generated], np.bool_)
        made = cls.of(
            truths,
            np.zeros(len(truths)),
            truth_literal=list(truth),
            prediction_literal=list(generated),
            **columns,
        )
        return made._replace(valid=valid, measures="answers")

    def literals(self) -> Iterator[tuple[str, str | None]]:
        """Truth and prediction of each as they are written; None for one that is not valid."""
        assert self.truth_literal is not None and self.prediction_literal is not None
        columns = self.truth_literal, self.prediction_literal, self.valid.tolist()
        for truth, prediction, valid in zip(*columns, strict=True):
            yield truth, prediction if valid else None

    def take(self, rows: Bools | Ints) -> "Predictions":
        """A part of the numbers, by a mask [n] or by indices [k]."""
        indices = np.arange(len(self.truth))[rows]

        def part(column: Any) -> Any:
            if column is None or isinstance(column, str):
                return column
            if isinstance(column, np.ndarray):
                return column[indices]
            return [column[index] for index in indices.tolist()]

        return Predictions(*map(part, self))


class Metric(ABC):
    """A metric. Subclasses are final frozen dataclasses; their fields are settings.

    ``measures`` says what it is of. ``better`` says which of two figures is the better one;
    ``neither`` where a figure is good near a value between (coverage). No figure lies outside
    ``bounds``. ``share`` says that it is the mean of one 0 or 1 for each that is counted: then one
    of 0 or 1, which is the same in every resample, has an interval nevertheless, Wilson's.
    ``undefined`` says why a figure can be no finite number. ``needs`` are columns of Predictions
    that may be None: what is NaN in one of them has no part in the figure.
    """

    revision: ClassVar[int]
    source: ClassVar[str]
    better: ClassVar[Literal["higher", "lower", "neither"]]
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    share: ClassVar[bool] = False
    undefined: ClassVar[str]
    measures: ClassVar[Measures] = "numbers"
    needs: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def statistic(self, answers: Predictions) -> Statistic:
        """The metric of at least one number, with the columns in ``needs``, all of them counted, as
        a function of float64[resamples, n] weights that returns float64[resamples].

        Weights are whole numbers, a weight of k the same as a row k times. NaN or infinity
        stands where a resample leaves the metric undefined.
        """

    @final
    def missing(self, answers: Predictions) -> str | None:
        """What the metric lacks before it can be computed at all; None if nothing."""
        if not len(answers.truth):
            return f"there are no {answers.measures}"
        if answers.measures != self.measures:
            return f"it measures {self.measures}, and these are {answers.measures}"
        lacks = [name for name in self.needs if getattr(answers, name) is None]
        if not lacks and not self.is_known(answers).any():
            lacks = [self.needs[0]]
        return f"there is no {lacks[0].replace('_', ' ')}" if lacks else None

    @final
    def is_known(self, answers: Predictions) -> Bools:
        """bool[n]: of which numbers, or labels, the columns in ``needs`` say something."""
        known = np.ones(len(answers.truth), np.bool_)
        for column in (getattr(answers, name) for name in self.needs):
            if isinstance(column, np.ndarray):
                known &= ~np.isnan(column).any(axis=tuple(range(1, column.ndim)))
        return known

    def counted(self, answers: Predictions) -> Bools:
        """bool[n]: which of them have a part in the figure, those that are known."""
        return self.is_known(answers)

    @final
    def of_counted(self, answers: Predictions) -> Statistic:
        """:meth:`statistic` of those that are counted, as a function of the weights of all."""
        counted = self.counted(answers)
        if counted.all():
            return self.statistic(answers)
        if not counted.any():
            return lambda weights: np.full(len(weights), np.nan)
        found = self.statistic(answers.take(counted))
        return lambda weights: found(weights[:, counted])

    @final
    @_quiet
    def compute(self, answers: Predictions, weights: Floats) -> Floats:
        """The metric of each of float64[resamples, n] weights: float64[resamples]."""
        return self.of_counted(answers)(weights)

    @final
    def plain(self, answers: Predictions) -> float:
        """The metric with every number counted once; not finite where it is undefined."""
        return float(self.compute(answers, np.ones((1, len(answers.truth))))[0])

    @final
    def why_undefined(self, answers: Predictions) -> str | None:
        """Why there is no figure for these answers; None if there is one."""
        if reason := self.missing(answers):
            return reason
        return None if np.isfinite(self.plain(answers)) else self.undefined


class MeanMetric(Metric):
    """A metric that is the mean of a value of each number; undefined where one is not finite."""

    @abstractmethod
    def values(self, answers: Predictions) -> Values:
        """[n]: the value of each, of such predictions as :meth:`statistic` is of."""

    @final
    def statistic(self, answers: Predictions) -> Statistic:
        return mean(np.asarray(self.values(answers), np.float64))


class ShareMetric(MeanMetric):
    """A metric that is the share of the numbers of which something is true."""

    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    share: ClassVar[bool] = True
    undefined: ClassVar[str] = "nothing is counted"


METRICS = Registry[Metric]("numtok.metrics", "metric", Metric)


class PairedDifference(NamedTuple):
    """Two experiments compared. ``share_better``: the share of resamples in which the first is
    the better one, a tie counted half; None where neither direction is better."""

    figure: Figure
    share_better: float | None


@_quiet
def figures(
    metrics: Sequence[Metric],
    answers: Predictions,
    *,
    resamples: int = _RESAMPLES,
    level: float = _LEVEL,
) -> dict[str, Figure]:
    """Every metric, by its spec, with a percentile bootstrap interval (Efron 1979).

    All metrics see the same resamples; one that leaves a metric undefined is left out of its
    interval. A share of 0 or 1 has Wilson's, of as many as there are samples. An undefined metric
    has no value, and one sample gives no interval.

    >>> figures([METRICS.build("mae")], Predictions.of([1, 2, 3], [1, 2, 4]))
    {'mae': Figure(value=0.3333333333333333, low=0.0, high=1.0, n=3)}
    """
    return figures_over_seeds(metrics, [answers], resamples=resamples, level=level)


@_quiet
def figures_over_seeds(
    metrics: Sequence[Metric],
    seeds: Sequence[Predictions],
    *,
    resamples: int = _RESAMPLES,
    level: float = _LEVEL,
) -> dict[str, Figure]:
    """Compute the mean of each metric over the seeds of one experiment, by its spec.

    All seeds answer the same questions. Each resample draws samples and, as often as there are
    seeds, one of the seeds; otherwise as :func:`figures`. Undefined if it is for one of the seeds.
    """
    _check(resamples, level)
    first = seeds[0]
    defined = [m for m in metrics if not any(m.missing(answers) for answers in seeds)]
    found = _bootstrapped(
        [mean_over_seeds([m.of_counted(one) for one in seeds], stream=1) for m in defined],
        first,
        resamples,
        level,
    )
    by_spec = {
        spec_of(metric): _counted(
            figure, metric.counted(first), first.sample, level if metric.share else None
        )
        for metric, (figure, _) in zip(defined, found, strict=True)
    }
    nothing = Figure(None, None, None, len(first.truth))
    return {spec_of(metric): by_spec.get(spec_of(metric), nothing) for metric in metrics}


def _counted(figure: Figure, counted: Bools, sample: Ints | None, of_share: float | None) -> Figure:
    """The figure of some of the numbers (bool[n]); of one sample without an interval. ``of_share``
    is the level of the interval of a share, None for what is none."""
    n = int(counted.sum())
    drawn = n if sample is None else len(np.unique(sample[counted]))
    if drawn < 2:
        return Figure(figure.value, None, None, n)
    if of_share is not None and figure.value in (0.0, 1.0):
        return Figure(figure.value, *ends(figure.value, drawn, of_share), n)
    return msgspec.structs.replace(figure, n=n)


def means(columns: Sequence[Floats], answers: Predictions, *, shares: bool = False) -> list[Figure]:
    """The mean of each column, float64[n], with its 95% bootstrap interval: ``shares``, or
    differences of shares. All see the same resamples, which are those of the metrics of these
    answers.

    >>> means([np.array([1.0, 0.0, 0.0])], Predictions.of([1, 2, 3], [1, 2, 4]))
    [Figure(value=0.3333333333333333, low=0.0, high=1.0, n=3)]
    """
    found = _bootstrapped([mean(column) for column in columns], answers, _RESAMPLES, _LEVEL)
    every = np.ones(len(answers.truth), np.bool_)
    return [
        _counted(figure, every, answers.sample, _LEVEL if shares else None) for figure, _ in found
    ]


@_quiet
def paired(
    metric: Metric,
    first: Sequence[Predictions],
    second: Sequence[Predictions],
    *,
    resamples: int = _RESAMPLES,
    level: float = _LEVEL,
    draw_seeds: bool = False,
) -> PairedDifference:
    """In each resample, the metric's mean over the seeds of ``first`` minus that of ``second``.

    All answer the same questions in the same order; ValueError if their truths differ. What is
    hard for both cancels, so the interval is narrower than that of two figures apart. It is for
    these seeds, on other numbers; it does not say what other seeds would give, unless with
    ``draw_seeds`` the seeds of each side are drawn anew in each resample, too.
    """
    _check(resamples, level)
    every = [*first, *second]
    truth = every[0].truth
    if not all(np.array_equal(answers.truth, truth) for answers in every):
        raise ValueError("paired answers must have the same truths in the same order")
    # What one side has no part in says nothing of the other.
    counted = np.all([metric.counted(answers) for answers in every], axis=0)
    if not counted.all():
        first, second = ([one.take(counted) for one in side] for side in (first, second))
        every = [*first, *second]
    if any(metric.missing(answers) for answers in every):
        return PairedDifference(Figure(None, None, None, len(truth)), None)
    ours, theirs = (
        mean_over_seeds(
            [metric.statistic(answers) for answers in side], stream=stream if draw_seeds else None
        )
        for stream, side in enumerate((first, second), 1)
    )

    def difference(weights: Floats) -> Floats:
        return ours(weights) - theirs(weights)

    [(figure, found)] = _bootstrapped([difference], every[0], resamples, level)
    share = None
    if figure.value is not None and metric.better != "neither" and len(found):
        gain = found if metric.better == "higher" else -found
        share = float(np.mean((np.sign(gain) + 1) / 2))
    return PairedDifference(figure, share)


def _check(resamples: int, level: float) -> None:
    if resamples < 1 or not 0 < level < 1:
        raise UsageError(
            f"a bootstrap of {resamples} resamples at level {level} is not possible; it needs at "
            "least one resample and a level between 0 and 1, such as 0.95"
        )


def _bootstrapped(
    statistics: Sequence[Statistic], answers: Predictions, resamples: int, level: float
) -> list[tuple[Figure, Floats]]:
    """Each statistic's figure, and its replicates in the resamples that define it."""
    n = len(answers.truth)
    plain = [float(statistic(np.ones((1, n)))[0]) for statistic in statistics]
    found = replicates(statistics, n, answers.sample, resamples, seed=0)
    defined = [values[~np.isnan(values)] for values in found]
    return [
        (Figure(value, *interval(values, level), n), values)
        if np.isfinite(value)
        else (Figure(None, None, None, n), values)
        for value, values in zip(plain, defined, strict=True)
    ]
