"""Limits of figures, as ``r2>=0.99``: a gate that each report meets or does not, or a level that is
reached while a model learns.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import msgspec

from numtok.errors import UsageError
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
    """Whether one report meets one requirement; one whose figure is undefined does not."""

    requirement: str
    limit: float
    report: str
    value: float | None
    met: bool

    @property
    def message(self) -> str:
        """What the report has, and what it is to have."""
        has = "no figure" if self.value is None else apart(self.value, self.limit)
        return f"{self.report} has {has} where {self.requirement} is required"


@dataclass(frozen=True)
class Limit:
    """``key`` is what has the limit, ``sign`` one of >=, <=, >, <.

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
        """A limit as it is written; UsageError, of which the rest is, for what has another form."""
        match = _FORM.fullmatch(text)
        try:
            limit = float(match[3]) if match else math.nan
        except ValueError:
            limit = math.nan
        if match is None or not math.isfinite(limit):
            raise UsageError(
                f"{option} {text!r} is not {what} OP NUMBER; OP is >=, >, <= or <, "
                f'as in {option} "{example}"'
            )
        return cls(match[1], match[2], limit)

    def holds(self, value: float) -> bool:
        """Whether a figure is on the side of the limit where it is to be."""
        return _OPERATORS[self.sign](value, self.limit)


@dataclass(frozen=True)
class Requirement(Limit):
    """``key`` is the canonical spec of a metric."""

    @classmethod
    def parse(cls, text: str) -> "Requirement":
        """``Requirement.parse("r2 >= 0.99")``; UsageError for what has another form."""
        read = cls.read(text, "--require", "METRIC", "r2>=0.99")
        return replace(read, key=spec_of(METRICS.build(read.key)))

    def judge(self, ref: str, figures: Mapping[str, Figure]) -> RequirementResult:
        """Whether one report meets it, by its figures over all numbers."""
        value = figures[self.key].value
        met = value is not None and self.holds(value)
        return RequirementResult(
            requirement=str(self), limit=self.limit, report=ref, value=value, met=met
        )


def apart(value: float, limit: float) -> str:
    """A figure with so many digits that it lies on the same side of the limit as it does.

    >>> apart(0.98765432, 0.99), apart(0.9999999, 1.0)
    ('0.987654', '0.9999999')
    """
    for digits in range(6, 17):
        told = f"{value:.{digits}g}"
        if (float(told) < limit) == (value < limit) and (float(told) > limit) == (value > limit):
            return told
    return repr(value)
