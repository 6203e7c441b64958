"""Ridge regression on sparse features. Its strength and the scale of the values are chosen on rows
that are held back. Requires scikit-learn."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from numtok.arrays import Bools, Floats
from numtok.evaluation.rows import sampled

_STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
_FITTED, _HELD_BACK = 4000, 1000  # maximum numbers of rows by which strength and scale are chosen


class TargetScale(NamedTuple):
    """A scale on which values are fitted.

    forward, inverse
        Increasing functions from raw values float64[n] to the scale, and back.
    low, high
        Smallest and largest training value on the scale.
    """

    forward: Callable[[Floats], Floats]
    inverse: Callable[[Floats], Floats]
    low: float
    high: float

    def raw(self, predictions: Floats) -> Floats:
        """Return predictions as raw values, float64[n], limited to the range of the training
        values."""
        return self.inverse(np.clip(predictions, self.low, self.high))


class Ridge(NamedTuple):
    """A fitted ridge regression. ``model`` is the estimator of scikit-learn."""

    model: Any
    scale: TargetScale

    def predict(self, x: Any) -> Floats:
        """Return predictions float64[n] for sparse features [n, k]."""
        return self.scale.raw(self.model.predict(x))


def tuned_ridge(x: Any, y: Floats, held_back: Bools) -> Ridge:
    """Fit ridge regression to sparse features ``x`` [m, k] and finite values ``y`` [m].

    The strength and the scale with the smallest mean absolute error on the rows ``held_back``,
    bool[m], after fitting to the others are used. Both are chosen on at most 5,000 rows. Neither
    part may be empty.
    """
    from sklearn.linear_model import Ridge as Estimator

    def fitted(strength: float, features: Any, values: Floats) -> Any:
        return Estimator(alpha=strength, solver="lsqr").fit(features, values)

    scales = _scales(y)
    on_scales = np.column_stack([scale.forward(y) for scale in scales])
    others = sampled(np.flatnonzero(~held_back), _FITTED, "ridge")
    held = sampled(np.flatnonzero(held_back), _HELD_BACK, "ridge")
    features, queried = x[others], x[held]
    size = np.abs(y).max() or 1.0  # so that sums do not overflow
    errors = np.empty((len(_STRENGTHS), len(scales)))
    for row, each in enumerate(_STRENGTHS):
        predicted = fitted(each, features, on_scales[others]).predict(queried)
        predicted = predicted.reshape(-1, len(scales))
        for column, scale in enumerate(scales):
            raw = scale.raw(predicted[:, column])
            errors[row, column] = np.abs(raw / size - y[held] / size).mean()
    strength, best = divmod(int(errors.argmin()), len(scales))
    return Ridge(fitted(_STRENGTHS[strength], x, on_scales[:, best]), scales[best])


def _scales(y: Floats) -> list[TargetScale]:
    """Return the scales for values ``y``: the values, and their logarithm. If some are not
    positive, it is the signed logarithm of ``1 + |y| / median |y|``."""
    size = float(np.abs(y).max()) or 1.0
    functions: list[tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = [
        (lambda values: values / size, lambda values: values * size)
    ]
    if y.min() > 0:
        functions.append((np.log, np.exp))
    elif y.any():
        typical = float(np.quantile(np.abs(y[y != 0]), 0.5, method="inverted_cdf"))
        functions.append(
            (
                lambda values: np.copysign(np.log1p(np.abs(values) / typical), values),
                lambda values: np.copysign(np.expm1(np.abs(values)) * typical, values),
            )
        )
    return [
        TargetScale(forward, inverse, float(forward(y).min()), float(forward(y).max()))
        for forward, inverse in functions
    ]
