"""base: interface for normalizers, which map raw values to a range that suits a scheme, and back.

The constants of a normalizer are fitted in one pass over the train split and stored in
``scheme.json``. Metrics are computed on raw values, after the inverse mapping. Values that are not
finite are ignored when fitting, and no normalizer changes them.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from numtok.arrays import Bools, Floats
from numtok.declaration import setting
from numtok.errors import DataError, UsageError
from numtok.registry import Registry, Settings, spec_of

Constants = dict[str, float]

_ALL, _ANSWER = "all", "answer"
_IN_ANSWERS = "answer_"  # prefix of the constants for numbers in answers

_NEAR = 1e-8  # relative; the difference of two values this close has lost half its digits


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Statistics of the finite values that normalizers are fitted to: count, range, mean, spread,
    and mean magnitude."""

    count: int = 0
    low: float = np.inf
    high: float = -np.inf
    mean: float = 0.0
    squares: float = 0.0  # sum of squared differences from the mean
    magnitude: float = 0.0

    @classmethod
    def of(cls, values: Floats) -> "Moments":
        """Return the moments of the finite values among ``values``, float64[n]."""
        finite = values[np.isfinite(values)]
        if not len(finite):
            return cls()
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(finite.mean())
            squares = float(np.square(finite - mean).sum())
            magnitude = float(np.abs(finite).mean())
        return cls(
            count=len(finite),
            low=float(finite.min()),
            high=float(finite.max()),
            mean=mean,
            squares=squares,
            magnitude=magnitude,
        )

    def merged(self, other: "Moments") -> "Moments":
        """Return the moments of two samples combined (Chan et al. 1979)."""
        count = self.count + other.count
        if not count:
            return self
        shift = other.mean - self.mean
        share = other.count / count
        return Moments(
            count=count,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            mean=self.mean + shift * share,
            squares=self.squares + other.squares + shift * shift * self.count * share,
            magnitude=self.magnitude + (other.magnitude - self.magnitude) * share,
        )

    @property
    def largest(self) -> float:
        """Largest magnitude of the values."""
        return max(abs(self.low), abs(self.high))

    @property
    def deviation(self) -> float:
        """Population standard deviation of the values."""
        return float(np.sqrt(self.squares / self.count))


class Normalizer(ABC):
    """Base class for normalizers. Subclasses are final frozen dataclasses whose fields are
    settings."""

    revision: ClassVar[int]
    fitted: ClassVar[bool] = True  # False: no constants, so no pass over the data
    identity: ClassVar[bool] = False  # True: numbers are written as in the text
    keeps_zero: ClassVar[bool] = False  # True: only 0 becomes 0; any other 0 is an underflow
    linear: ClassVar[bool] = False  # True: the slope is constant

    @abstractmethod
    def fit(self, moments: Moments) -> Constants:
        """Return the constants of the normalizer, computed from the moments of at least one
        number."""

    @abstractmethod
    def forward(self, values: Floats, constants: Constants) -> Floats:
        """Normalize raw values, float64[n]."""

    @abstractmethod
    def inverse(self, values: Floats, constants: Constants) -> Floats:
        """Map normalized values, float64[n], back to raw values, up to rounding."""

    @abstractmethod
    def log_slope(self, values: Floats, constants: Constants) -> Floats:
        """Return the logarithm of the derivative of :meth:`forward` at finite raw values,
        float64[n].

        The derivative converts a density of normalized values into a density of raw values. It is
        positive, because every normalizer is increasing.
        """


@dataclass(frozen=True, kw_only=True)
class AnswerNormalizer(Normalizer):
    """Base class for normalizers that can have separate constants for the numbers in answers, that
    is, after the row's ``answer_start``."""

    by: str = setting(
        _ALL,
        "answer: separate constants for the numbers after answer_start.",
        choices=(_ALL, _ANSWER),
    )


def splits_answers(normalizer: Normalizer) -> bool:
    """Return whether the normalizer has separate constants for the numbers in answers."""
    return isinstance(normalizer, AnswerNormalizer) and normalizer.by == _ANSWER


class Scaling(Protocol):
    """Protocol for mappings from raw values to normalized values and back, with known constants.
    :class:`FittedNormalizer` and :class:`Chained` implement it."""

    @property
    def linear(self) -> bool:
        """True if the slope of the mapping is constant."""

    def forward(self, values: Floats) -> Floats:
        """Normalize raw values, float64[n]."""

    def inverse(self, values: Floats) -> Floats:
        """Map normalized values, float64[n], back to raw values."""

    def log_slope(self, values: Floats) -> Floats:
        """Return the logarithm of d(normalized) / d(raw) at finite raw values, float64[n]."""


def width_between(scaling: Scaling, low: Floats, high: Floats) -> Floats:
    """Return ``forward(high) - forward(low)``, float64[n]. The difference is accurate even if both
    ends are rounded to the same normalized value.

    >>> scaling = FittedNormalizer(Scale(5), {"factor": 1e-6})
    >>> width_between(scaling, np.array([1e6]), np.array([1e6 + 2**-33]))
    array([1.16415322e-16])
    """
    ends = scaling.forward(low), scaling.forward(high)
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf is NaN
        middle, apart = low + (high - low) / 2, ends[1] - ends[0]
        rounded = apart < _NEAR * np.abs(ends[1])
        inside = np.where(rounded & np.isfinite(middle), middle, 0.0)
        by_slope = (high - low) * np.exp(scaling.log_slope(inside))
    return np.where(rounded, by_slope, apart)


@dataclass(frozen=True)
class FittedNormalizer:
    """A normalizer with its fitted constants.

    If it has separate constants for the numbers in answers, :meth:`at` must be called first.
    """

    normalizer: Normalizer
    constants: Constants

    def at(self, in_answer: Bools | bool | None) -> "FittedNormalizer":
        """Return the normalizer with the constants of n given numbers.

        in_answer
            bool[n], True for numbers in answers; a single value applies to all numbers. None if it
            is unknown, which is only allowed if all numbers have the same constants.
        """
        if not splits_answers(self.normalizer):
            return self
        if in_answer is None:
            raise UsageError(
                f"--normalize {spec_of(self.normalizer)} needs to know which numbers are in "
                "answers; this does not. Use data encoded without by=answer"
            )
        own: dict[str, Any] = {
            name: np.where(in_answer, self.constants[_IN_ANSWERS + name], value)
            for name, value in self.constants.items()
            if not name.startswith(_IN_ANSWERS)
        }
        assert isinstance(self.normalizer, AnswerNormalizer)
        return FittedNormalizer(replace(self.normalizer, by=_ALL), own)

    @property
    def linear(self) -> bool:
        """True if the slope of the mapping is constant."""
        return self.normalizer.linear

    def forward(self, values: Floats) -> Floats:
        """Normalize raw values, float64[n]."""
        with np.errstate(over="ignore", under="ignore"):
            one = self.at(None)
            return one.normalizer.forward(values, one.constants)

    def inverse(self, values: Floats) -> Floats:
        """Map normalized values, float64[n], back to raw values."""
        with np.errstate(over="ignore", under="ignore"):
            one = self.at(None)
            return one.normalizer.inverse(values, one.constants)

    def log_slope(self, values: Floats) -> Floats:
        """Return the logarithm of d(normalized) / d(raw) at finite raw values, float64[n]."""
        one = self.at(None)
        return one.normalizer.log_slope(values, one.constants)


@dataclass(frozen=True)
class Chained:
    """Composition of two scalings; the second is applied to the output of the first."""

    first: Scaling
    second: Scaling

    @property
    def linear(self) -> bool:
        """True if the slope of the mapping is constant."""
        return self.first.linear and self.second.linear

    def forward(self, values: Floats) -> Floats:
        """Normalize raw values, float64[n]."""
        return self.second.forward(self.first.forward(values))

    def inverse(self, values: Floats) -> Floats:
        """Map normalized values, float64[n], back to raw values."""
        return self.first.inverse(self.second.inverse(values))

    def log_slope(self, values: Floats) -> Floats:
        """Return the logarithm of d(normalized) / d(raw) at finite raw values, float64[n]."""
        return self.first.log_slope(values) + self.second.log_slope(self.first.forward(values))


def no_scaling() -> FittedNormalizer:
    """Return a scaling that leaves values unchanged."""
    return FittedNormalizer(NORMALIZERS.build("none"), {})


def fit(
    normalizer: Normalizer, moments: Moments, in_answers: Moments | None = None
) -> FittedNormalizer:
    """Fit a normalizer to the moments of the train split.

    in_answers
        Moments of the numbers in answers, if the normalizer has separate constants for them;
        ``moments`` are then those of all other numbers.

    Raises DataError if no number is finite, or if float64 cannot represent the constants.
    """
    if splits_answers(normalizer):
        return _fit_both(normalizer, moments, in_answers or Moments())
    if not normalizer.fitted:
        return FittedNormalizer(normalizer, {})
    name = spec_of(normalizer)
    if not moments.count:
        raise DataError(
            f"--normalize {name} needs finite numbers, but the train split has none. "
            "Use --normalize none, or data with numbers"
        )
    constants = normalizer.fit(moments)
    if not all(np.isfinite(list(constants.values()))):
        raise DataError(
            f"--normalize {name}: numbers from {moments.low} to {moments.high} exceed float64 "
            "after normalization. Use --normalize signed-log or none"
        )
    return FittedNormalizer(normalizer, constants)


def _fit_both(normalizer: Normalizer, others: Moments, in_answers: Moments) -> FittedNormalizer:
    """Fit a normalizer to the numbers in answers and to all others."""
    if not others.count or not in_answers.count:
        raise DataError(
            f"--normalize {spec_of(normalizer)} needs finite numbers before and after "
            "answer_start, but the train split has only one kind. Leave out by=answer"
        )
    assert isinstance(normalizer, AnswerNormalizer)
    single = replace(normalizer, by=_ALL)
    constants = fit(single, others).constants
    more = fit(single, in_answers).constants
    return FittedNormalizer(
        normalizer, constants | {_IN_ANSWERS + name: value for name, value in more.items()}
    )


def stored_normalizer(settings: Settings, constants: Constants) -> FittedNormalizer:
    """Restore a fitted normalizer from its stored settings and constants.

    Raises UsageError if a setting is unknown, and ValueError if the constants could not have come
    from a fit.
    """
    normalizer = NORMALIZERS.from_settings(settings)
    needed = [*normalizer.fit(Moments.of(np.array([0.0, 1.0])))]
    fitted = FittedNormalizer(normalizer, constants)
    if splits_answers(normalizer):
        needed += [_IN_ANSWERS + name for name in needed]
    if constants.keys() != {*needed}:
        raise ValueError(
            f"{spec_of(normalizer)} needs the constants {', '.join(needed) or 'none'} "
            f"(got {', '.join(constants) or 'none'})"
        )
    with np.errstate(all="ignore"):
        slopes = [fitted.at(in_answer).log_slope(np.zeros(1)) for in_answer in (False, True)]
    if not np.isfinite([*constants.values(), *np.concatenate(slopes)]).all():
        raise ValueError(f"{spec_of(normalizer)} cannot have the constants {constants}")
    return fitted


NORMALIZERS = Registry[Normalizer]("numtok.encoding.normalizers", "normalizer", Normalizer)
