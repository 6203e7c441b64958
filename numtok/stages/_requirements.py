"""Gates: ``r2>=0.99`` is a requirement that each report meets or does not."""

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


class Verdict(msgspec.Struct, frozen=True):
    """Whether one report meets one requirement; one whose figure is undefined does not."""

    requirement: str
    report: str
    value: float | None
    met: bool


@dataclass(frozen=True)
class Requirement:
    """``metric`` is the canonical spec, ``sign`` one of >=, <=, >, <."""

    metric: str
    sign: str
    limit: float

    def __str__(self) -> str:
        return f"{self.metric}{self.sign}{self.limit:g}"

    @classmethod
    def parse(cls, text: str) -> "Requirement":
        """``Requirement.parse("r2 >= 0.99")``; UsageError for what has another form."""
        match = _FORM.fullmatch(text)
        try:
            limit = float(match[3]) if match else math.nan
        except ValueError:
            limit = math.nan
        if match is None or not math.isfinite(limit):
            raise UsageError(
                f"--require {text!r} is not METRIC OP NUMBER; OP is >=, >, <= or <, "
                'as in --require "r2>=0.99"'
            )
        return cls(spec_of(METRICS.build(match[1])), match[2], limit)

    def judge(self, ref: str, figures: Mapping[str, Figure]) -> Verdict:
        """The verdict on one report, from its figures over all numbers."""
        value = figures[self.metric].value
        met = value is not None and _OPERATORS[self.sign](value, self.limit)
        return Verdict(str(self), ref, value, met)
