"""The contract of a normaliser: values into a range and back, from constants that are stored.

Constants are fitted in one pass over the train split only, kept in
``scheme.json`` and undone before any metric. Values that are not finite stay
out of the fit and pass through unchanged.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from numtok.arrays import Floats
from numtok.errors import DataError
from numtok.registry import Registry, Settings, spec_of

Constants = dict[str, float]

_NEAR = 1e-8  # of a value: two that are nearer to each other have lost half their digits


@dataclass(frozen=True, kw_only=True)
class Moments:
    """What a fit may look at: of the finite values, their number, range, mean and spread, and the
    mean of their magnitudes."""

    count: int = 0
    low: float = np.inf
    high: float = -np.inf
    mean: float = 0.0
    squares: float = 0.0  # sum of squared deviations from the mean
    magnitude: float = 0.0

    @classmethod
    def of(cls, values: Floats) -> "Moments":
        """The moments of float64[n]."""
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
        """The moments of both samples together (Chan et al. 1979)."""
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
        """The largest magnitude."""
        return max(abs(self.low), abs(self.high))

    @property
    def deviation(self) -> float:
        """The standard deviation of the sample as a population."""
        return float(np.sqrt(self.squares / self.count))


class Normalizer(ABC):
    """A normalisation. Subclasses are final frozen dataclasses; their fields are settings."""

    revision: ClassVar[int]
    fitted: ClassVar[bool] = True  # False: no constants, so no pass over the data
    identity: ClassVar[bool] = False  # True: numbers are written as they are in the text
    keeps_zero: ClassVar[bool] = False  # True: only 0 becomes 0, so any other 0 is an underflow
    linear: ClassVar[bool] = False  # True: the slope is the same everywhere

    @abstractmethod
    def fit(self, moments: Moments) -> Constants:
        """The constants, from moments of at least one number."""

    @abstractmethod
    def forward(self, values: Floats, constants: Constants) -> Floats:
        """float64[n] raw values to normalised ones."""

    @abstractmethod
    def inverse(self, values: Floats, constants: Constants) -> Floats:
        """float64[n] normalised values to raw ones, to rounding."""

    @abstractmethod
    def log_slope(self, values: Floats, constants: Constants) -> Floats:
        """float64[n]: the logarithm of the derivative of :meth:`forward`, at finite raw values.

        It turns a density of normalised values into one of raw values. Every normaliser rises.
        """


class Scaling(Protocol):
    """Raw values to normalised ones and back, with all constants known."""

    @property
    def linear(self) -> bool:
        """Whether the slope is the same everywhere."""

    def forward(self, values: Floats) -> Floats:
        """float64[n] raw values to normalised ones."""

    def inverse(self, values: Floats) -> Floats:
        """float64[n] normalised values to raw ones."""

    def log_slope(self, values: Floats) -> Floats:
        """float64[n]: log of d(normalised) / d(raw) at finite raw values."""


def width_between(scaling: Scaling, low: Floats, high: Floats) -> Floats:
    """float64[n]: forward(high) - forward(low), also where both round to one normalised value.

    >>> scaling = FittedNormalizer(Scale(5), {"factor": 1e-6})
    >>> width_between(scaling, np.array([1e6]), np.array([1e6 + 2**-33]))
    array([1.16415322e-16])
    """
    ends = scaling.forward(low), scaling.forward(high)
    with np.errstate(invalid="ignore", over="ignore"):  # between equal infinities is nothing
        middle, apart = low + (high - low) / 2, ends[1] - ends[0]
        rounded = apart < _NEAR * np.abs(ends[1])
        inside = np.where(rounded & np.isfinite(middle), middle, 0.0)
        by_slope = (high - low) * np.exp(scaling.log_slope(inside))
    return np.where(rounded, by_slope, apart)


@dataclass(frozen=True)
class FittedNormalizer:
    """A normaliser with its constants."""

    normalizer: Normalizer
    constants: Constants

    @property
    def linear(self) -> bool:
        """Whether the slope is the same everywhere."""
        return self.normalizer.linear

    def forward(self, values: Floats) -> Floats:
        """float64[n] raw values to normalised ones."""
        with np.errstate(over="ignore", under="ignore"):
            return self.normalizer.forward(values, self.constants)

    def inverse(self, values: Floats) -> Floats:
        """float64[n] normalised values to raw ones."""
        with np.errstate(over="ignore", under="ignore"):
            return self.normalizer.inverse(values, self.constants)

    def log_slope(self, values: Floats) -> Floats:
        """float64[n]: log of d(normalised) / d(raw) at finite raw values."""
        return self.normalizer.log_slope(values, self.constants)


@dataclass(frozen=True)
class Chained:
    """Two normalisations: what the first gives is normalised by the second."""

    first: Scaling
    second: Scaling

    @property
    def linear(self) -> bool:
        """Whether the slope is the same everywhere."""
        return self.first.linear and self.second.linear

    def forward(self, values: Floats) -> Floats:
        """float64[n] raw values to normalised ones."""
        return self.second.forward(self.first.forward(values))

    def inverse(self, values: Floats) -> Floats:
        """float64[n] normalised values to raw ones."""
        return self.first.inverse(self.second.inverse(values))

    def log_slope(self, values: Floats) -> Floats:
        """float64[n]: log of d(normalised) / d(raw) at finite raw values."""
        return self.first.log_slope(values) + self.second.log_slope(self.first.forward(values))


def no_scaling() -> FittedNormalizer:
    """Return the scaling that does not change values."""
    return FittedNormalizer(NORMALIZERS.build("none"), {})


def fit(normalizer: Normalizer, moments: Moments) -> FittedNormalizer:
    """Take the constants from the moments of the train split.

    Raises DataError where there is no finite number, or float64 cannot hold the constants.
    """
    if not normalizer.fitted:
        return FittedNormalizer(normalizer, {})
    name = spec_of(normalizer)
    if not moments.count:
        raise DataError(
            f"--normalize {name}: the train split has no finite number to fit it on; "
            "give --normalize none, or data with numbers"
        )
    constants = normalizer.fit(moments)
    if not all(np.isfinite(list(constants.values()))):
        raise DataError(
            f"--normalize {name}: numbers from {moments.low} to {moments.high} leave the range of "
            "float64 when normalised; give --normalize signed-log or none"
        )
    return FittedNormalizer(normalizer, constants)


def stored_normalizer(settings: Settings, constants: Constants) -> FittedNormalizer:
    """What was fitted and written down as settings and constants.

    Raises UsageError for settings that this numtok does not know, ValueError for constants that no
    fit gives.
    """
    normalizer = NORMALIZERS.from_settings(settings)
    needed = normalizer.fit(Moments.of(np.array([0.0, 1.0]))).keys()
    if constants.keys() != needed:
        raise ValueError(
            f"{spec_of(normalizer)} has the constants {', '.join(constants) or 'none'}, it needs "
            f"{', '.join(needed) or 'none'}"
        )
    with np.errstate(all="ignore"):
        slope = normalizer.log_slope(np.zeros(1), constants)
    if not np.isfinite([*constants.values(), *slope]).all():
        raise ValueError(f"{spec_of(normalizer)} cannot have the constants {constants}")
    return FittedNormalizer(normalizer, constants)


NORMALIZERS = Registry[Normalizer]("numtok.encoding.normalizers", "normaliser", Normalizer)
