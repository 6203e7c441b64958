"""Limits of figures, as ``r2>=0.99``: a gate that each report meets or does not, or a level that is
reached while a model learns.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

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


class RequirementResult(msgspec.Struct, frozen=True):
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
class Requirement:
    """``metric`` is the canonical spec, ``sign`` one of >=, <=, >, <."""

    metric: str
    sign: str
    limit: float

    def __str__(self) -> str:
        return f"{self.metric}{self.sign}{limit_text(self.limit)}"

    @classmethod
    def parse(cls, text: str) -> "Requirement":
        """``Requirement.parse("r2 >= 0.99")``; UsageError for what has another form."""
        metric, sign, limit = limited(text, "--require", "METRIC", "r2>=0.99")
        return cls(spec_of(METRICS.build(metric)), sign, limit)

    def judge(self, ref: str, figures: Mapping[str, Figure]) -> RequirementResult:
        """Whether one report meets it, by its figures over all numbers."""
        value = figures[self.metric].value
        met = value is not None and holds(value, self.sign, self.limit)
        return RequirementResult(str(self), self.limit, ref, value, met)


def limited(text: str, option: str, what: str, example: str) -> tuple[str, str, float]:
    """What has a limit, the sign and the limit, of ``text``; the rest is for the message.

    >>> limited("r2 >= 0.99", "--require", "METRIC", "r2>=0.99")
    ('r2', '>=', 0.99)

    Raises UsageError for what has another form.
    """
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
    return match[1], match[2], limit


def limit_text(limit: float) -> str:
    """A limit with all its digits: ``0.99999999``, ``12``."""
    return repr(limit).removesuffix(".0")


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


def holds(value: float, sign: str, limit: float) -> bool:
    """``value sign limit``, as in 0.995 >= 0.99."""
    return _OPERATORS[sign](value, limit)
