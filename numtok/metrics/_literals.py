"""Numbers as written: the exact value of a literal and its digits by position.

Metrics on digits compare literals, never floats: 0.1 + 0.2 is not 0.3, and an
operand of a hundred digits does not fit into a float. A literal is one number under
the numeral policy; it may contain group commas (``1,234``), ``%`` or U+2212.

Digits are compared as in NUPA (Yang et al. 2025). A number has three parts: the digits before the
decimal point, the digits after it, and the digits of the exponent. A prediction in a different
notation than the true value (12300.0 for 1.23e4, or 1e-05 for 1e-5) is first rewritten exactly in
the notation of the true value; its decimals are dropped if the true value has no decimal point.
Trailing zeros count as digits: 0.1 misses one digit of 0.10. As in the published code, signs are
not compared. Unlike in the published code, a prediction without a decimal point does not fail if
the true value has one: it only misses the decimals.
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
# Limit on the zeros added when an exponent is written out. The range of float64 ends before that.
_MOST_ZEROS = 400


class Exact(NamedTuple):
    """The number ``(-1)^negative * digits * 10^exponent`` in normal form: ``digits`` has no leading
    or trailing zeros."""

    negative: bool
    digits: str  # empty for zero
    exponent: int


class Numeral(NamedTuple):
    """A literal split into its parts."""

    negative: bool
    whole: str
    decimals: str | None  # None if there is no point
    exponent: str | None
    percent: bool

    @classmethod
    def read(cls, literal: str | None) -> "Numeral | None":
        """Split a literal. Returns None if it is not a decimal number (missing, nan, inf).

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
        """Return the exact value. Unless ``digits`` is 0, it is rounded to that many significant
        digits, with ties to even.

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
        """Power of ten of the last digit: 0 for 1302, 1 for 1.30e3, -2 for 0.10 and for 23%."""
        # int() refuses more than 4300 digits
        return int(Decimal(self.exponent or 0)) - len(self.decimals or "") - 2 * self.percent

    def rounded(self, power: int) -> Exact:
        """Return the exact value, rounded to a multiple of ``10^power``, with ties to even.

        >>> Numeral.read("1301.98").rounded(0), Numeral.read("0.5").rounded(0).digits
        (Exact(negative=False, digits='1302', exponent=0), '')
        """
        significant = (self.whole + (self.decimals or "")).lstrip("0")
        kept = len(significant) + self.place - power
        if kept > 0:
            return self.exact(kept)
        # Below one unit: rounds to one if above a half, else to zero.
        is_one = kept == 0 and significant.rstrip("0") > "5"
        return Exact(self.negative, "1", power) if is_one else Exact(False, "", 0)

    @property
    def parts(self) -> Parts:
        """Digits before the decimal point, after it, and in the exponent. Signs and leading zeros
        of the exponent are dropped."""
        exponent = self.exponent and (self.exponent.lstrip("+-").lstrip("0") or "0")
        return self.whole, self.decimals or "", exponent or ""

    def written_like(self, other: "Numeral") -> "Numeral":
        """Rewrite the number in the notation of ``other``.

        If ``other`` has an exponent, the result has an exponent and the same number of digits
        before the decimal point. It is a percentage if ``other`` is one, has no decimals if
        ``other`` has no decimal point, and has a leading 0 if ``other`` has one.

        >>> Numeral.read("5e-02").written_like(Numeral.read("0.5")).parts
        ('0', '05', '')
        >>> Numeral.read("1.23e+05").written_like(Numeral.read("45.6e7")).parts
        ('12', '3', '4')
        """
        numeral = self
        if self._notation != other._notation:
            negative, digits, exponent = self.exact()
            exact = Exact(negative, digits, exponent + 2 * other.percent)
            before = other._notation[0]
            numeral = _in_full(exact) if before is None else _scientific(exact, before)
        if {numeral.whole, other.whole} == {"", "0"}:
            numeral = numeral._replace(whole=other.whole)
        return numeral._replace(decimals=numeral.decimals if other.decimals is not None else None)

    @property
    def _notation(self) -> tuple[int | None, bool]:
        """Number of digits before the decimal point if there is an exponent, else None; and whether
        the number is a percentage."""
        before = None if self.exponent is None else len(self.whole.lstrip("0"))
        return before, self.percent


def _in_full(number: Exact) -> Numeral:
    negative, digits, exponent = number
    before = len(digits) + exponent  # number of digits before the decimal point
    if before <= 0 or not digits:
        whole, decimals = "0", "0" * min(-before, _MOST_ZEROS) + digits
    else:
        whole, decimals = digits[:before] + "0" * min(exponent, _MOST_ZEROS), digits[before:]
    return Numeral(negative, whole, decimals, None, False)


def _scientific(number: Exact, before: int) -> Numeral:
    """Write a number with ``before`` digits before the decimal point; with none, write a 0."""
    negative, digits, exponent = number
    if not digits:
        return Numeral(negative, "0", "", "0", False)
    whole = digits[:before].ljust(before, "0") or "0"
    return Numeral(negative, whole, digits[before:], str(exponent + len(digits) - before), False)


def numerals(answers: Predictions) -> Iterator[tuple[Numeral, Numeral | None]]:
    """Yield the true value and the prediction of each number.

    The prediction is None if it is invalid or not a decimal number. Raises ValueError if the true
    value is not a decimal number.
    """
    for written, predicted in answers.literals():
        truth = Numeral.read(written)
        if truth is None:
            raise ValueError(f"a true value must be a decimal number (got {written!r})")
        yield truth, Numeral.read(predicted)


def parts(answers: Predictions) -> Iterator[tuple[Parts, Parts | None]]:
    """Yield the parts of each true value and of its prediction. The latter are None if the
    prediction is invalid."""
    for truth, prediction in numerals(answers):
        yield truth.parts, prediction and prediction.written_like(truth).parts
