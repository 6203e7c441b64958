"""Contract checks for normalizers, run by ``numtok check normalizer NAME``."""

import numpy as np

from numtok.arrays import Floats
from numtok.contracts import (
    check_declared,
    check_settings,
    checks_of,
    expect,
    expect_array,
    expect_kind,
    require,
)
from numtok.encoding.normalizers.base import (
    NORMALIZERS,
    FittedNormalizer,
    Moments,
    Normalizer,
    fit,
)

_ODD = np.array([np.nan, np.inf, -np.inf])


def _columns(seed: int) -> list[Floats]:
    """Return columns of numbers to fit on, with a single value, one order of magnitude, or many."""
    generator = np.random.default_rng(seed)
    sizes = 10.0 ** generator.uniform(-8, 11, 30) * generator.choice([-1, 1], 30)
    columns = [[0.0], [3.0, 3.0], [-4.0, 3.0, 12.0], [5.0, 1e12], [-1e-3, -7e-9]]
    return [*map(np.array, columns), generator.normal(20, 4, 30), np.append(sizes, 0.0)]


def _fitted(normalizer: Normalizer, column: Floats) -> FittedNormalizer:
    return fit(normalizer, Moments.of(column))


def check_declarations(normalizer: Normalizer, seed: int) -> None:
    """All declared attributes exist, and ``fitted`` is True exactly if there are constants."""
    name = "declarations"
    check_declared(normalizer, name, revision=int)
    check_settings(NORMALIZERS, normalizer, name)
    constants = normalizer.fit(Moments.of(np.array([1.0, 3.0])))
    for value in expect_kind(normalizer, "fit", constants, dict).values():
        expect_kind(normalizer, "fit", value, float)
    expect(normalizer, name, "has constants", bool(constants), normalizer.fitted)


def check_shapes(normalizer: Normalizer, seed: int) -> None:
    """The output is float64 and has as many values as the input, even for empty columns."""
    for count in (5, 0):
        fitted = _fitted(normalizer, np.array([1.0, 2.0, 7.0]))
        values = np.linspace(-2, 9, count)
        for member in (fitted.forward, fitted.inverse, fitted.log_slope):
            expect_array(normalizer, member.__name__, member(values), (count,), dtype="float64")


def check_inverse(normalizer: Normalizer, seed: int) -> None:
    """The inverse restores the values."""
    for column in _columns(seed):
        fitted, largest = _fitted(normalizer, column), float(np.abs(column).max())
        again = fitted.inverse(fitted.forward(column))
        for value, back in zip(column.tolist(), again.tolist(), strict=True):
            near = np.isclose(back, value, rtol=1e-11, atol=1e-13 * largest)
            require(normalizer, "inverse", near, f"{value}: got {back} after forward and inverse")


def check_odd_values(normalizer: Normalizer, seed: int) -> None:
    """Values that are not finite pass through unchanged."""
    fitted = _fitted(normalizer, np.array([-4.0, 3.0, 12.0]))
    for member in ("forward", "inverse"):
        got = getattr(fitted, member)(_ODD)
        same = np.array_equal(got, _ODD, equal_nan=True)
        what = f"{member}: got {got.tolist()}, expected {_ODD.tolist()}"
        require(normalizer, "odd values", same, what)


def check_monotone(normalizer: Normalizer, seed: int) -> None:
    """Normalization is monotone, and distinct values stay distinct."""
    for column in _columns(seed):
        fitted = _fitted(normalizer, column)
        around = np.append(column, [*(column * 1.5), *(column - 1), 0.0])
        values = np.unique(around)
        apart = np.diff(values) > 1e-6 * np.abs(values).max()
        rise = np.diff(fitted.forward(values))
        bad = np.flatnonzero((rise < 0) | (apart & (rise <= 0)))
        if len(bad):
            low, high = values[bad[0] : bad[0] + 2].tolist()
            what = f"from {low} to {high}: got a rise of {rise[bad[0]]}, expected more than 0"
            require(normalizer, "monotone", False, what)


def check_slope(normalizer: Normalizer, seed: int) -> None:
    """``log_slope`` is the logarithm of the derivative, and ``linear`` is True exactly if the
    derivative is constant."""
    name, values = "slope", np.array([-1e6, -20.0, -0.3, 0.0, 1e-3, 5.0, 7e8])
    fitted = _fitted(normalizer, np.array([-4.0, 3.0, 12.0]))
    step = 1e-6 * (1 + np.abs(values))
    rise = (fitted.forward(values + step) - fitted.forward(values - step)) / (2 * step)
    slopes = np.exp(fitted.log_slope(values))
    near = np.allclose(slopes, rise, rtol=1e-5, atol=0)
    require(normalizer, name, near, f"got {slopes.tolist()}, expected {rise.tolist()}")
    expect(normalizer, name, "linear", normalizer.linear, bool((slopes == slopes[0]).all()))


def check_facts(normalizer: Normalizer, seed: int) -> None:
    """If ``identity`` is True, values do not change. If ``keeps_zero`` is True, only 0 becomes
    0."""
    name, column = "facts", np.array([-4.0, 3.0, 12.0])
    fitted = _fitted(normalizer, column)
    if normalizer.identity:
        expect(normalizer, name, "identity", fitted.forward(column).tolist(), column.tolist())
    if normalizer.keeps_zero:
        values = np.array([0.0, 1e-3, -3.0, 4.0])
        zeros = (fitted.forward(values) == 0).tolist()
        expect(normalizer, name, "keeps_zero: what becomes 0", zeros, (values == 0).tolist())


CHECKS = checks_of(__name__)
