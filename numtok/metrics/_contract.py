"""Contract checks for metrics, run by ``numtok check metric NAME``.

Random predictions with every column are generated from a seed. They include ties, zeros, wrong
signs and invalid predictions.
"""

import math
from collections.abc import Iterator

import numpy as np

from numtok.arrays import Floats
from numtok.contracts import (
    check_declared,
    check_examples,
    check_settings,
    checks_of,
    described,
    expect,
    expect_array,
    require,
    wrong,
)
from numtok.metrics.base import METRICS, MeanMetric, Metric, Predictions
from numtok.part_class import missing_in
from numtok.reports import QUANTILES, Measures

_DRAWS = 40  # random sets of predictions per check


def made_up(seed: int, n: int) -> Predictions:
    """Generate random predictions of n numbers, with every column."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(-3, 12, n) / 2
    prediction = np.where(generator.random(n) < 0.5, truth, generator.integers(-3, 12, n) / 4)
    valid = generator.random(n) < 0.8
    written = [
        repr(value) if ok else None for value, ok in zip(prediction.tolist(), valid, strict=True)
    ]
    return Predictions(
        truth=truth,
        prediction=prediction,
        valid=valid,
        truth_literal=[repr(value) for value in truth.tolist()],
        prediction_literal=written,
        log_density=generator.normal(size=n),
        crps=generator.random(n),
        quantiles=np.sort(generator.normal(size=(n, len(QUANTILES))), axis=1),
        pit=generator.random(n),
        log_density_tailed=generator.normal(size=n),
        log_interval=-generator.random(n),
        token_nll=generator.random(n),
        outside=generator.random(n) < 0.3,
        log_range=np.full(n, 1.5),
        log_probability=-generator.random(n),
        field=generator.integers(0, 3, n),
        field_median=generator.integers(-3, 12, n) / 2,
        interval_low=prediction - generator.random(n),
        interval_high=prediction + generator.random(n),
    )


def made_up_for(metric: Metric, seed: int, n: int) -> Predictions:
    """Generate random predictions of the kind that the metric measures.

    For labels, each number stands for one label. For answers, literals have no sign.
    """
    predictions = made_up(seed, n)
    if metric.measures == "answers":
        predictions = predictions._replace(
            truth_literal=[repr(abs(value)) for value in predictions.truth.tolist()],
            prediction_literal=[
                text and text.lstrip("-") for text in predictions.prediction_literal or ()
            ],
        )
    return predictions._replace(measures=metric.measures)


def _drawn(metric: Metric, seed: int) -> Iterator[tuple[Predictions, np.random.Generator]]:
    """Yield predictions of 1 to 12 numbers, each with a random generator for further draws."""
    for draw in range(_DRAWS):
        generator = np.random.default_rng([seed, draw])
        yield made_up_for(metric, int(generator.integers(1 << 30)), 1 + draw % 12), generator


def _same(metric: Metric, name: str, what: str, got: float, expected: float) -> None:
    """Require two values to be equal up to rounding, or both not finite."""
    close = math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-12)
    both = not math.isfinite(got) and not math.isfinite(expected)
    require(metric, name, close or both, f"{what}: got {got}, expected {expected}")


def check_declarations(metric: Metric, seed: int) -> None:
    """Check that all declared attributes exist and are consistent, and that the class is final."""
    name = "declarations"
    check_declared(metric, name, revision=int, source=str, undefined=str)
    allowed = ("higher", "lower", "neither")
    choices = " or ".join(map(repr, allowed))
    require(
        metric, name, metric.better in allowed, f"better: got {metric.better!r}, expected {choices}"
    )
    least, most = metric.bounds
    require(metric, name, least < most, f"bounds: got {least} to {most}, expected least < most")
    expect(
        metric, name, "unknown columns in needs", {*metric.needs} - {*Predictions._fields}, set()
    )
    above = [kind for kind in type(metric).__mro__[1:] if issubclass(kind, Metric)]
    concrete = [kind.__name__ for kind in above if not missing_in(kind)]
    expect(metric, name, "concrete base classes", concrete, [])
    check_settings(METRICS, metric, name)


def check_shapes(metric: Metric, seed: int) -> None:
    """Check that a metric returns one value per row of weights, and ``counted`` one boolean per
    number."""
    for predictions, generator in _drawn(metric, seed):
        weights = generator.integers(1, 4, (3, len(predictions.truth))).astype(np.float64)
        counted = metric.counted(predictions)
        expect_array(metric, "counted", counted, (len(predictions.truth),), dtype="bool")
        if not counted.any():
            continue
        some, n = predictions.take(counted), int(counted.sum())
        with np.errstate(all="ignore"):
            if isinstance(metric, MeanMetric):
                values = metric.values(some)
                expect_array(metric, "values", values, (n,), dtype="float64|bool")
            statistic = metric.statistic(some)
            if not callable(statistic):
                wrong(metric, "statistic", described(statistic), "a function of weights")
            figures = statistic(weights[:, counted])
        expect_array(metric, "statistic", figures, (3,), dtype="float64")


def check_missing(metric: Metric, seed: int) -> None:
    """Check that a metric is undefined, with a reason, if rows or a needed column are missing, or
    if the predictions are of another kind."""
    name, predictions = "missing", made_up_for(metric, seed, 5)
    nothing = metric.why_undefined(predictions.take(np.arange(0)))
    expect(metric, name, "without rows", nothing, f"there are no {metric.measures}")
    for column in metric.needs:
        lacking = Predictions(**predictions._asdict() | {column: None})
        why = metric.why_undefined(lacking)
        reason = f"the predictions have no {column.replace('_', ' ')}"
        expect(metric, name, f"without {column}", why, reason)
    other: Measures = "numbers" if metric.measures != "numbers" else "labels"
    why = metric.why_undefined(predictions._replace(measures=other))
    reason = f"it measures {metric.measures}, not {other}"
    expect(metric, name, f"for {other}", why, reason)


def check_weights(metric: Metric, seed: int) -> None:
    """Check that a weight of k is equivalent to k copies of the row."""
    for predictions, generator in _drawn(metric, seed):
        weights = generator.integers(0, 4, len(predictions.truth))
        weights[0] = max(weights[0], 1)
        repeated = predictions.take(np.repeat(np.arange(len(weights)), weights))
        got = metric.compute(predictions, weights[None].astype(np.float64))[0]
        what = f"weights {weights.tolist()} versus repeated rows"
        _same(metric, "weights", what, float(got), metric.plain(repeated))


def check_resamples(metric: Metric, seed: int) -> None:
    """Check that each resample is computed independently of the others."""
    for predictions, generator in _drawn(metric, seed):
        n = len(predictions.truth)
        weights = (generator.integers(0, 3, (4, n)) + (np.arange(n) == 0)).astype(np.float64)
        together = metric.compute(predictions, weights)
        for row, value in zip(weights, together.tolist(), strict=True):
            alone = float(metric.compute(predictions, row[None])[0])
            _same(metric, "resamples", "one of several resamples versus alone", value, alone)


def check_order(metric: Metric, seed: int) -> None:
    """Check that the order of the numbers does not matter."""
    for predictions, generator in _drawn(metric, seed):
        shuffled = predictions.take(generator.permutation(len(predictions.truth)))
        got, expected = metric.plain(shuffled), metric.plain(predictions)
        _same(metric, "order", "after shuffling", got, expected)


def check_best(metric: Metric, seed: int) -> None:
    """Check that no prediction scores better than the true values."""
    if metric.better == "neither":
        return
    for predictions, _ in _drawn(metric, seed):
        perfect = predictions._replace(
            prediction=predictions.truth,
            valid=np.ones(len(predictions.truth), np.bool_),
            prediction_literal=predictions.truth_literal,
        )
        best, got = metric.plain(perfect), metric.plain(predictions)
        gain = best - got if metric.better == "higher" else got - best
        beaten = math.isfinite(got) and not gain >= -1e-12
        what = f"got {got}, expected nothing better than the {best} of perfect predictions"
        require(metric, "best", not beaten, what)


def check_bounds(metric: Metric, seed: int) -> None:
    """Check that no value lies outside the declared bounds."""
    least, most = metric.bounds
    for predictions, _ in _drawn(metric, seed):
        got = metric.plain(predictions)
        inside = not math.isfinite(got) or least <= got <= most
        require(metric, "bounds", inside, f"got {got}, expected {least} to {most}")


def check_equal_truths(metric: Metric, seed: int) -> None:
    """Check that constant true values give either a value or a reason why it is undefined."""
    for value in (0.0, -2.5, 1e300, 5e-324):
        literal = f"{abs(value):.1f}" if metric.measures == "answers" else repr(value)
        for n in (1, 2, 5):
            truth: Floats = np.full(n, value)
            predictions = made_up_for(metric, seed + 1, n)
            predictions = predictions._replace(truth=truth, truth_literal=[literal] * n)
            why, figure = metric.why_undefined(predictions), metric.plain(predictions)
            what = (
                f"{n} true values of {value}: got {figure} and the reason {why!r}, expected "
                "exactly one of them"
            )
            require(metric, "equal truths", (why is None) == math.isfinite(figure), what)


def check_worked_example(metric: Metric, seed: int) -> None:
    """Check that the file has a worked example, and that it passes."""
    check_examples(metric, "worked example")


CHECKS = checks_of(__name__)
