"""Base classes for metrics, bootstrap confidence intervals, and paired differences.

A metric is a function of *weights*, the number of times that each number counts. If all weights are
1, its result is the plain value. If they are the counts of a bootstrap resample, its result is a
bootstrap replicate. Work that does not depend on the weights (errors, sorting, parsing literals) is
done only once, when :meth:`Metric.statistic` is called.
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
_RESAMPLES = 1000  # of all intervals

#: A metric that overflows or divides by zero is undefined, which is reported separately.
quiet = np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore")


class Predictions(NamedTuple):
    """True values and predictions of n items: numbers, labels (one per row) or whole answers.

    truth, prediction
        float64[n], finite. Invalid predictions are already replaced (by the train mean). Labels are
        coded as numbers: equal labels have equal codes.
    valid
        bool[n], whether each prediction is valid.
    truth_literal, prediction_literal
        n strings: each number as written in the text, and its prediction as the scheme writes it
        (None if invalid). For labels, the labels themselves; for answers, the true and the
        generated text.
    log_density
        float64[n], log density of the predictive distribution at the true value, in nats.
    crps
        float64[n], continuous ranked probability score, in the units of the true values.
    quantiles
        float64[n, len(reports.QUANTILES)], quantiles of the predictive distribution, in the units
        of the true values.
    sample
        int64[n], index of the sample (row of the data) that each number belongs to. The numbers of
        a sample are not independent, so the bootstrap draws whole samples. If this column is None,
        it draws individual numbers.
    pit
        float64[n], probability P(X <= truth) under the predictive distribution.
    log_density_tailed
        float64[n], log density with explicit tail probabilities, in nats.
    log_interval
        float64[n], log probability of the rounding interval of the true value, in nats.
    token_nll
        float64[n], mean cross-entropy of the tokens of the true value, in nats.
    outside
        bool[n], whether the true value lies outside the range of the train split.
    log_range
        float64[n], natural logarithm of the width of the train split's range.
    log_probability
        float64[n], log probability of the true label in nats; NaN if the label is not in the train
        split.
    field
        int64[n], code of the field that each number belongs to.
    field_median
        float64[n], median of that field in the train split; NaN for numbers without a field.
    interval_low, interval_high
        float64[n], ends of the conformal 90% intervals, in the units of the true values.
    measures
        Kind of the items: ``numbers``, ``labels`` or ``answers``.
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
    field: Ints | None = None
    field_median: Floats | None = None
    interval_low: Floats | None = None
    interval_high: Floats | None = None
    measures: Measures = "numbers"

    @classmethod
    def of(cls, truth: ArrayLike, prediction: ArrayLike, **columns: Any) -> "Predictions":
        """Build predictions from array-likes. All predictions are marked as valid."""
        arrays: dict[str, Any] = {
            name: column if name.endswith("literal") else np.asarray(column)
            for name, column in columns.items()
        }
        truths = np.asarray(truth, np.float64)
        valid = np.ones(len(truths), np.bool_)
        return cls(truths, np.asarray(prediction, np.float64), valid, **arrays)

    @classmethod
    def of_labels(
        cls, truth: Sequence[str], prediction: Sequence[str], **columns: Any
    ) -> "Predictions":
        """Build predictions of labels. The codes of the true labels do not depend on the predicted
        labels."""
        labels = sorted(set(truth))
        labels += sorted(set(prediction) - set(labels))
        codes = {label: float(index) for index, label in enumerate(labels)}
        predictions = cls.of(
            [codes[label] for label in truth],
            [codes[label] for label in prediction],
            truth_literal=list(truth),
            prediction_literal=list(prediction),
            **columns,
        )
        return predictions._replace(measures="labels")

    @classmethod
    def of_texts(
        cls, truth: Sequence[str], generated: Sequence[str | None], **columns: Any
    ) -> "Predictions":
        """Build predictions of whole answers from texts, such as fractions. None stands for a
        missing answer.

        Equal true answers have equal codes. Generated answers have no codes: ``prediction`` is 0.
        """
        codes = {text: float(index) for index, text in enumerate(sorted(set(truth)))}
        truths = np.array([codes[text] for text in truth], np.float64)
        valid = np.array([text is not None for text in generated], np.bool_)
        predictions = cls.of(
            truths,
            np.zeros(len(truths)),
            truth_literal=list(truth),
            prediction_literal=list(generated),
            **columns,
        )
        return predictions._replace(valid=valid, measures="answers")

    def literals(self) -> Iterator[tuple[str, str | None]]:
        """Yield the true and the predicted literal of each item. The predicted literal is None if
        the prediction is invalid."""
        assert self.truth_literal is not None and self.prediction_literal is not None
        columns = self.truth_literal, self.prediction_literal, self.valid.tolist()
        for truth, prediction, valid in zip(*columns, strict=True):
            yield truth, prediction if valid else None

    def take(self, rows: Bools | Ints) -> "Predictions":
        """Return only the items selected by a mask [n] or by indices [k]."""
        indices = np.arange(len(self.truth))[rows]

        def part(column: Any) -> Any:
            if column is None or isinstance(column, str):
                return column
            if isinstance(column, np.ndarray):
                return column[indices]
            return [column[index] for index in indices.tolist()]

        return Predictions(*map(part, self))


class Metric(ABC):
    """Base class for metrics. Subclasses are final frozen dataclasses whose fields are the metric's
    settings.

    revision
        Version of the definition. Increment it when values change.
    source
        Paper that defines the metric, with its section, table or equation.
    measures
        Kind of items that the metric evaluates: ``numbers``, ``labels`` or ``answers``.
    better
        Which values are better: ``higher``, ``lower``, or ``neither`` if the best value lies in
        between, as for coverage.
    bounds
        Smallest and largest possible value.
    share
        True if the metric is the fraction of rows that satisfy a condition. A fraction of exactly 0
        or 1 is the same in every resample, so it gets Wilson's interval instead of a bootstrap
        interval.
    undefined
        Reason that is reported if the value is not finite.
    needs
        Optional columns of :class:`Predictions` that are required. Rows with NaN in one of them are
        skipped.
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
        """Return the metric of ``answers`` as a function from weights, float64[resamples, n], to
        values, float64[resamples].

        ``answers`` has at least one row, has all columns in ``needs``, and contains only rows that
        :meth:`counted` selects. Weights are integers: a weight of k is equivalent to k copies of
        the row. The value is NaN or infinite for resamples in which the metric is undefined.
        """

    @final
    def missing(self, answers: Predictions) -> str | None:
        """Return the reason why the metric cannot be computed for ``answers``, or None if it
        can."""
        if not len(answers.truth):
            return f"there are no {answers.measures}"
        if answers.measures != self.measures:
            return f"it measures {self.measures}, not {answers.measures}"
        lacks = [name for name in self.needs if getattr(answers, name) is None]
        if not lacks and not self.is_known(answers).any():
            lacks = [self.needs[0]]
        return f"the predictions have no {lacks[0].replace('_', ' ')}" if lacks else None

    @final
    def is_known(self, answers: Predictions) -> Bools:
        """Return bool[n]: True for rows that have a value in every column in ``needs``."""
        is_known = np.ones(len(answers.truth), np.bool_)
        for column in (getattr(answers, name) for name in self.needs):
            if isinstance(column, np.ndarray):
                is_known &= ~np.isnan(column).any(axis=tuple(range(1, column.ndim)))
        return is_known

    def counted(self, answers: Predictions) -> Bools:
        """Return bool[n]: True for rows that the metric counts. By default, these are all rows with
        known values (:meth:`is_known`)."""
        return self.is_known(answers)

    @final
    def of_counted(self, answers: Predictions) -> Statistic:
        """Return the :meth:`statistic` of the counted rows as a function of the weights of all
        rows, [resamples, n]. It is NaN if no row is counted."""
        counted = self.counted(answers)
        if counted.all():
            return self.statistic(answers)
        if not counted.any():
            return lambda weights: np.full(len(weights), np.nan)
        statistic = self.statistic(answers.take(counted))
        return lambda weights: statistic(weights[:, counted])

    @final
    @quiet
    def compute(self, answers: Predictions, weights: Floats) -> Floats:
        """Return the metric, float64[resamples], for weights float64[resamples, n]."""
        return self.of_counted(answers)(weights)

    @final
    def plain(self, answers: Predictions) -> float:
        """Return the metric with every row counted once. It is NaN or infinite if the metric is
        undefined."""
        return float(self.compute(answers, np.ones((1, len(answers.truth))))[0])

    @final
    def why_undefined(self, answers: Predictions) -> str | None:
        """Return the reason why the metric is undefined for ``answers``, or None if it is
        defined."""
        if reason := self.missing(answers):
            return reason
        return None if np.isfinite(self.plain(answers)) else self.undefined


class MeanMetric(Metric):
    """Base class for metrics that are the mean of one value per row. The metric is undefined if any
    of these values is not finite."""

    @abstractmethod
    def values(self, answers: Predictions) -> Values:
        """Return one value per row, [n]. ``answers`` meets the same conditions as in
        :meth:`statistic`."""

    @final
    def statistic(self, answers: Predictions) -> Statistic:
        return mean(np.asarray(self.values(answers), np.float64))


class ShareMetric(MeanMetric):
    """Base class for metrics that are the fraction of rows that satisfy a condition. ``values``
    returns bool[n], True for rows that satisfy the condition."""

    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    share: ClassVar[bool] = True
    undefined: ClassVar[str] = "no row is counted"


METRICS = Registry[Metric]("numtok.metrics", "metric", Metric)


class PairedDifference(NamedTuple):
    """Difference of a metric between two experiments, as computed by :func:`paired`.

    figure
        The difference, first minus second, with its confidence interval.
    share_better
        Fraction of resamples in which the first experiment is better, with ties counted as half.
        None if neither higher nor lower values of the metric are better, if the difference is
        undefined, or if no resamples are usable.
    """

    figure: Figure
    share_better: float | None


@quiet
def figures(
    metrics: Sequence[Metric],
    answers: Predictions,
    *,
    resamples: int = _RESAMPLES,
) -> dict[str, Figure]:
    """Return the value of each metric with a 95% percentile bootstrap interval (Efron 1979), keyed
    by metric spec.

    All metrics use the same resamples. Resamples in which a metric is undefined are excluded from
    its interval. A fraction of exactly 0 or 1 gets Wilson's interval for the number of samples. The
    value of an undefined metric is None. Intervals require at least two samples.

    >>> figures([METRICS.build("mae")], Predictions.of([1, 2, 3], [1, 2, 4]))
    {'mae': Figure(value=0.3333333333333333, low=0.0, high=1.0, n=3)}
    """
    return figures_over_seeds(metrics, [answers], resamples=resamples)


@quiet
def figures_over_seeds(
    metrics: Sequence[Metric],
    seeds: Sequence[Predictions],
    *,
    resamples: int = _RESAMPLES,
) -> dict[str, Figure]:
    """Return the mean of each metric over the seeds of one experiment, keyed by metric spec.

    All seeds must predict the same rows. Each bootstrap resample draws both samples and seeds, with
    replacement. In all other respects, intervals are computed as in :func:`figures`. A metric is
    undefined if it is undefined for any seed.
    """
    _check(resamples)
    first = seeds[0]
    defined = [m for m in metrics if not any(m.missing(answers) for answers in seeds)]
    results = _bootstrapped(
        [mean_over_seeds([m.of_counted(seed) for seed in seeds], 1) for m in defined],
        first,
        resamples,
    )
    by_spec = {
        spec_of(metric): _counted(figure, metric.counted(first), first.sample, metric.share)
        for metric, (figure, _) in zip(defined, results, strict=True)
    }
    nothing = Figure(None, None, None, len(first.truth))
    return {spec_of(metric): by_spec.get(spec_of(metric), nothing) for metric in metrics}


def _counted(figure: Figure, counted: Bools, sample: Ints | None, share: bool) -> Figure:
    """Restrict a figure to the counted rows (bool[n]). With a single sample, the figure has no
    interval. ``share`` states whether the metric is a fraction."""
    n = int(counted.sum())
    drawn = n if sample is None else len(np.unique(sample[counted]))
    if drawn < 2:
        return Figure(figure.value, None, None, n)
    if share and figure.value in (0.0, 1.0):
        return Figure(figure.value, *ends(figure.value, drawn), n)
    return msgspec.structs.replace(figure, n=n)


def means(columns: Sequence[Floats], answers: Predictions, *, shares: bool = False) -> list[Figure]:
    """Return the mean of each column, float64[n], with its 95% bootstrap interval.

    Set ``shares`` if the means are fractions or differences of fractions, so that means of exactly
    0 or 1 have Wilson's interval. The resamples are the same as in :func:`figures` for the same
    predictions.

    >>> means([np.array([1.0, 0.0, 0.0])], Predictions.of([1, 2, 3], [1, 2, 4]))
    [Figure(value=0.3333333333333333, low=0.0, high=1.0, n=3)]
    """
    results = _bootstrapped([mean(column) for column in columns], answers, _RESAMPLES)
    every = np.ones(len(answers.truth), np.bool_)
    return [_counted(figure, every, answers.sample, shares) for figure, _ in results]


@quiet
def paired(
    metric: Metric,
    first: Sequence[Predictions],
    second: Sequence[Predictions],
    *,
    resamples: int = _RESAMPLES,
) -> PairedDifference:
    """Return the difference of a metric between two experiments: its mean over the seeds of
    ``first`` minus its mean over the seeds of ``second``.

    All predictions must be for the same rows in the same order. Raises ValueError if their true
    values differ. Rows that are hard for both experiments affect both means alike, so the interval
    is usually narrower than if each mean were resampled separately. Each resample draws rows, and
    the seeds of each experiment on their own, so the interval covers other rows and other seeds.
    """
    _check(resamples)
    every = [*first, *second]
    truth = every[0].truth
    if not all(np.array_equal(answers.truth, truth) for answers in every):
        raise ValueError("paired predictions must have the same true values in the same order")
    # Only rows that count on both sides can be compared.
    counted = np.all([metric.counted(answers) for answers in every], axis=0)
    if not counted.all():
        first, second = ([answers.take(counted) for answers in side] for side in (first, second))
        every = [*first, *second]
    if any(metric.missing(answers) for answers in every):
        return PairedDifference(Figure(None, None, None, len(truth)), None)
    ours, theirs = (
        mean_over_seeds([metric.statistic(answers) for answers in side], stream)
        for stream, side in enumerate((first, second), 1)
    )

    def difference(weights: Floats) -> Floats:
        return ours(weights) - theirs(weights)

    [(figure, differences)] = _bootstrapped([difference], every[0], resamples)
    share = None
    if figure.value is not None and metric.better != "neither" and len(differences):
        gain = differences if metric.better == "higher" else -differences
        share = float(np.mean((np.sign(gain) + 1) / 2))
    return PairedDifference(figure, share)


def _check(resamples: int) -> None:
    if resamples < 1:
        raise UsageError(f"the bootstrap needs at least one resample (got {resamples})")


def _bootstrapped(
    statistics: Sequence[Statistic], answers: Predictions, resamples: int
) -> list[tuple[Figure, Floats]]:
    """Return each statistic's figure, and its replicates in the resamples where it is defined."""
    n = len(answers.truth)
    plain = [float(statistic(np.ones((1, n)))[0]) for statistic in statistics]
    by_statistic = replicates(statistics, n, answers.sample, resamples, seed=0)
    defined = [values[~np.isnan(values)] for values in by_statistic]
    return [
        (Figure(value, *interval(values), n), values)
        if np.isfinite(value)
        else (Figure(None, None, None, n), values)
        for value, values in zip(plain, defined, strict=True)
    ]
