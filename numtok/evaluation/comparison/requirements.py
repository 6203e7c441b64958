"""Thresholds such as ``r2>=0.99``, for metrics in reports and metrics logged during training."""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import msgspec

from numtok.errors import NegativeVerdict, UsageError
from numtok.metrics.base import METRICS
from numtok.registry import spec_of
from numtok.reports import Figure

_FORM = re.compile(r"\s*(\S.*?)\s*(>=|<=|>|<)\s*(\S+)\s*")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class RequirementResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of checking one requirement on one report. An undefined metric does not meet a
    requirement."""

    requirement: str
    limit: float
    report: str
    value: float | None
    met: bool

    @property
    def message(self) -> str:
        """Sentence that states the value and the requirement that it does not meet."""
        has = "no value" if self.value is None else apart(self.value, self.limit)
        return f"{self.report} has {has}, but {self.requirement} is required"


@dataclass(frozen=True)
class Limit:
    """Threshold for a value, such as ``r2>=0.99``.

    key
        Name of the value.
    sign
        Comparison with the limit: >=, <=, > or <.
    limit
        Number with which the value is compared.

    >>> limit = Limit.read("r2 >= 0.99", "--require", "METRIC", "r2>=0.99")
    >>> str(limit), limit.holds(0.995)
    ('r2>=0.99', True)
    """

    key: str
    sign: str
    limit: float

    def __str__(self) -> str:
        return f"{self.key}{self.sign}{repr(self.limit).removesuffix('.0')}"

    @classmethod
    def read(cls, text: str, option: str, what: str, example: str) -> Self:
        """Parse a threshold such as ``"r2 >= 0.99"``. Raises UsageError if it is invalid.

        The error message contains ``option``, ``what`` (the kind of key) and ``example``.
        """
        match = _FORM.fullmatch(text)
        try:
            limit = float(match[3]) if match else math.nan
        except ValueError:
            limit = math.nan
        if match is None or not math.isfinite(limit):
            raise UsageError(
                f"{option} must be {what} OP NUMBER with OP one of >=, >, <=, < (got {text!r}). "
                f'Example: {option} "{example}"'
            )
        return cls(match[1], match[2], limit)

    def holds(self, value: float) -> bool:
        """Return whether a value satisfies the threshold."""
        return _OPERATORS[self.sign](value, self.limit)


@dataclass(frozen=True)
class Requirement(Limit):
    """Threshold that a metric of a report must meet. ``key`` is the metric's canonical spec."""

    @classmethod
    def parse(cls, text: str) -> "Requirement":
        """Parse a requirement such as ``"r2 >= 0.99"``. Raises UsageError if it is invalid."""
        read = cls.read(text, "--require", "METRIC", "r2>=0.99")
        return replace(read, key=spec_of(METRICS.build(read.key)))

    def judge(self, ref: str, figures: Mapping[str, Figure]) -> RequirementResult:
        """Check whether a report meets the requirement. ``ref`` is its REF, and ``figures`` are its
        metrics over all numbers."""
        value = figures[self.key].value
        met = value is not None and self.holds(value)
        return RequirementResult(
            requirement=str(self), limit=self.limit, report=ref, value=value, met=met
        )


def check_met(results: Iterable[RequirementResult]) -> None:
    """Raise NegativeVerdict if a requirement is not met."""
    if failed := [result.message for result in results if not result.met]:
        raise NegativeVerdict(f"not met: {'; '.join(failed)}")


def apart(value: float, limit: float) -> str:
    """Format a value with enough digits to show on which side of the limit it is.

    >>> apart(0.98765432, 0.99), apart(0.9999999, 1.0)
    ('0.987654', '0.9999999')
    """
    for digits in range(6, 17):
        text = f"{value:.{digits}g}"
        if (float(text) < limit) == (value < limit) and (float(text) > limit) == (value > limit):
            return text
    return repr(value)
