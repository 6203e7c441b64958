"""Numbers as written: what a literal denotes, exactly, and its digits at their places.

Metrics on digits compare literals, never floats: 0.1 + 0.2 is not 0.3, and an
operand of a hundred digits fits into no float. A literal is one number under the
numeral policy, with ``1,234``, ``23%`` and U+2212 among what may be in it.

Digits are compared as NUPA does (Yang et al. 2025). A number has three parts: the
digits before the point, those after it, and those of the exponent. The truth's
notation is the one that counts: a prediction in another (a scheme writes 12300.0
where the text has 1.23e4, or 1e-05 for 1e-5) is rewritten exactly, and its decimals
are left out where the truth has no point. Zeros behind the last decimal count as
digits: 0.1 lacks one of 0.10. As published, signs are not compared. Otherwise than
published, a prediction without a point for a truth that has one is not a failure:
it lacks the decimals, and nothing more.
"""

import re
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import NamedTuple

from numtok.metrics.base import Predictions

_NUMERAL = re.compile(
    r"(?P<sign>[-+\u2212]?)(?P<whole>[0-9,]*)(?:\.(?P<decimals>[0-9]*))?"
    r"(?:[eE](?P<exponent>[-+]?[0-9]+))?(?P<percent>%?)"
)
Parts = tuple[str, str, str]  # digits before the point, after it, of the exponent
# The most zeros that a number gets when its exponent is written out; float64 ends before that.
_MOST_ZEROS = 400


class Exact(NamedTuple):
    """``(-1)^negative * digits * 10^exponent``; no outer zeros, so equal numbers are equal."""

    negative: bool
    digits: str  # empty for zero
    exponent: int


class Numeral(NamedTuple):
    """A literal in its parts."""

    negative: bool
    whole: str
    decimals: str | None  # None if there is no point
    exponent: str | None
    percent: bool

    @classmethod
    def read(cls, literal: str | None) -> "Numeral | None":
        """The parts of a literal; None if it is no decimal number (missing, nan, inf).

        >>> Numeral.read("-1.50e3")
        Numeral(negative=True, whole='1', decimals='50', exponent='3', percent=False)
        """
        match = _NUMERAL.fullmatch(literal or "")
        if match is None:
            return None
        whole, decimals = match["whole"].replace(",", ""), match["decimals"]
        if not whole and not decimals:
            return None
        return cls(
            match["sign"] in ("-", "\u2212"),
            whole,
            decimals,
            match["exponent"],
            bool(match["percent"]),
        )

    def exact(self, digits: int = 0) -> Exact:
        """The number denoted, rounded half to even to ``digits`` significant digits if not 0.

        >>> Numeral.read("0.1435").exact(3)
        Exact(negative=False, digits='144', exponent=-3)
        """
        decimals = self.decimals or ""
        significant = (self.whole + decimals).lstrip("0")
        if not significant:
            return Exact(False, "", 0)
        exponent = self.place
        if 0 < digits < len(significant):
            context = Context(prec=digits, rounding=ROUND_HALF_EVEN)
            rounded = context.plus(Decimal(significant)).as_tuple()
            assert isinstance(rounded.exponent, int)  # a finite decimal
            significant = "".join(map(str, rounded.digits))
            exponent += rounded.exponent
        kept = significant.rstrip("0")
        return Exact(self.negative, kept, exponent + len(significant) - len(kept))

    @property
    def place(self) -> int:
        """The power of ten of the last digit: 0 of 1302, 1 of 1.30e3, -2 of 0.10 and of 23%."""
        # int() refuses more than 4300 digits
        return int(Decimal(self.exponent or 0)) - len(self.decimals or "") - 2 * self.percent

    def rounded(self, place: int) -> Exact:
        """The number denoted, rounded half to even to a multiple of ``10^place``.

        >>> Numeral.read("1301.98").rounded(0), Numeral.read("0.5").rounded(0).digits
        (Exact(negative=False, digits='1302', exponent=0), '')
        """
        significant = (self.whole + (self.decimals or "")).lstrip("0")
        kept = len(significant) + self.place - place
        if kept > 0:
            return self.exact(kept)
        # Below one unit: one if it is above a half, else nothing.
        is_one = kept == 0 and significant.rstrip("0") > "5"
        return Exact(self.negative, "1", place) if is_one else Exact(False, "", 0)

    @property
    def parts(self) -> Parts:
        """The digits before the point, after it, and of the exponent, without signs and without
        zeros in front of the exponent's."""
        exponent = self.exponent and (self.exponent.lstrip("+-").lstrip("0") or "0")
        return self.whole, self.decimals or "", exponent or ""

    def written_like(self, other: "Numeral") -> "Numeral":
        """The number with an exponent if ``other`` has one, and as many digits before the point,
        and without if not; as percent if ``other`` is; with no decimals if ``other`` has no point,
        and with a 0 before it if ``other`` writes one.

        >>> Numeral.read("5e-02").written_like(Numeral.read("0.5")).parts
        ('0', '05', '')
        >>> Numeral.read("1.23e+05").written_like(Numeral.read("45.6e7")).parts
        ('12', '3', '4')
        """
        made = self
        if self._notation != other._notation:
            negative, digits, exponent = self.exact()
            exact = Exact(negative, digits, exponent + 2 * other.percent)
            before = other._notation[0]
            made = _in_full(exact) if before is None else _scientific(exact, before)
        if {made.whole, other.whole} == {"", "0"}:
            made = made._replace(whole=other.whole)
        return made._replace(decimals=made.decimals if other.decimals is not None else None)

    @property
    def _notation(self) -> tuple[int | None, bool]:
        """Where it has an exponent how many digits stand before the point; and whether it is a
        percentage."""
        before = None if self.exponent is None else len(self.whole.lstrip("0"))
        return before, self.percent


def _in_full(number: Exact) -> Numeral:
    negative, digits, exponent = number
    before = len(digits) + exponent  # how many digits stand before the point
    if before <= 0 or not digits:
        whole, decimals = "0", "0" * min(-before, _MOST_ZEROS) + digits
    else:
        whole, decimals = digits[:before] + "0" * min(exponent, _MOST_ZEROS), digits[before:]
    return Numeral(negative, whole, decimals, None, False)


def _scientific(number: Exact, before: int) -> Numeral:
    """With so many digits before the point; with none it is 0."""
    negative, digits, exponent = number
    if not digits:
        return Numeral(negative, "0", "", "0", False)
    whole = digits[:before].ljust(before, "0") or "0"
    return Numeral(negative, whole, digits[before:], str(exponent + len(digits) - before), False)


def numerals(answers: Predictions) -> Iterator[tuple[Numeral, Numeral | None]]:
    """The truth and the prediction of each number; None for a prediction that is not valid, or
    not written as a decimal number. ValueError for such a truth."""
    for written, predicted in answers.literals():
        truth = Numeral.read(written)
        if truth is None:
            raise ValueError(f"the literal of a truth is {written!r}, which is no decimal number")
        yield truth, Numeral.read(predicted)


def parts(answers: Predictions) -> Iterator[tuple[Parts, Parts | None]]:
    """The parts of each truth, and of its prediction or None where that is not valid."""
    for truth, prediction in numerals(answers):
        yield truth.parts, prediction and prediction.written_like(truth).parts
