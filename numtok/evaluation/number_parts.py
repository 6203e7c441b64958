"""Numbers in parts, sign, mantissa and exponent: which are wrong, how often each comes.

Truth and prediction are written with as many significant digits: ``-0.0602`` is ``-``, ``602`` and
``E-4``, whatever the scheme of the model.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import exp, lgamma
from typing import NamedTuple

from numtok.metrics.base import Predictions
from numtok.numerals.literals import round_literal

KINDS = ("right", "mantissa", "exponent", "sign", "several", "no number")


class NumberParts(NamedTuple):
    """A number in parts, without zeros that only fill; zero itself has no parts."""

    sign: str
    mantissa: str
    exponent: str

    @classmethod
    def of(cls, literal: str, digits: int) -> "NumberParts":
        """Rounded half to even to ``digits`` significant digits.

        >>> tuple(NumberParts.of("-0.06025", 3))
        ('-', '602', 'E-4')
        """
        negative, mantissa, exponent = round_literal(literal, digits)
        if not mantissa:
            return cls("", "0", "")
        return cls("-" if negative else "", str(mantissa), f"E{exponent}")

    @property
    def size(self) -> str:
        """``"602E-4"``"""
        return self.mantissa + self.exponent

    @property
    def power(self) -> int:
        """``-4``; 0 of zero."""
        return int(self.exponent[1:] or 0)


def decimal_parts(
    answers: Predictions, digits: int
) -> tuple[list[NumberParts], list[NumberParts | None]]:
    """Truths and predictions in parts; None for what is no number."""
    literals = list(answers.literals())
    found = [said if said is None else NumberParts.of(said, digits) for _, said in literals]
    return [NumberParts.of(truth, digits) for truth, _ in literals], found


def kind(truth: NumberParts, found: NumberParts | None) -> str:
    """Which of :data:`KINDS` a prediction is: one part is wrong, or several, or none.

    The two numbers on either side of a power of ten are a unit of the last digit apart and have no
    part in common; one for the other is right. Further across it, both parts are wrong.

    >>> one = NumberParts.of("1.00", 3)
    >>> [kind(one, NumberParts.of(other, 3)) for other in ("0.999", "1.01", "0.998", "0.1", "0")]
    ['right', 'mantissa', 'several', 'exponent', 'several']
    """
    if found is None:
        return "no number"
    wrong = [
        part
        for part, one, other in zip(NumberParts._fields, truth, found, strict=True)
        if one != other
    ]
    if not wrong or _carried(truth, found):
        return "right"
    return wrong[0] if len(wrong) == 1 else "several"


def _carried(one: NumberParts, other: NumberParts) -> bool:
    """Whether these are ``999E-3`` and ``100E-2``."""
    low, high = sorted((one, other), key=lambda number: number.power)
    nines, tens = "9" * len(low.mantissa), "1".ljust(len(low.mantissa), "0")
    return (
        (low.sign, low.mantissa, high.mantissa) == (high.sign, nines, tens)
        and high.power == low.power + 1
        and bool(low.exponent and high.exponent)
    )


class PartShares(NamedTuple):
    """The shares of all mantissas, exponents and numbers without sign that there are."""

    mantissa: Mapping[str, float]
    exponent: Mapping[str, float]
    number: Mapping[str, float]

    @classmethod
    def of(cls, numbers: Sequence[NumberParts]) -> "PartShares":
        """Those among some numbers.

        >>> PartShares.of([NumberParts.of("0.1", 1), NumberParts.of("-0.2", 1)]).exponent
        {'E-1': 1.0}
        """

        def shares(values: Iterable[str]) -> dict[str, float]:
            return {one: count / len(numbers) for one, count in Counter(values).items()}

        return cls(
            shares(one.mantissa for one in numbers),
            shares(one.exponent for one in numbers),
            shares(one.size for one in numbers),
        )


def by_chance(true: Mapping[str, float], predicted: Mapping[str, float], n: int, m: int) -> float:
    """The total variation that is to be expected between ``n`` truths and ``m`` predictions of
    these shares if both are drawn alike: the mean over all ways to call ``n`` of the ``n + m`` the
    truths (a permutation test).

    Of a value that comes k times among both, the number among the truths is hypergeometric; its
    mean absolute deviation has a closed form, as de Moivre's for the binomial (Diaconis & Zabell
    1991): 2 x (m - k + x) / (n + m) times the probability of x, the first whole number above the
    mean.

    >>> round(by_chance({"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.5}, 2, 2), 6)  # 1, or 4 times 0
    0.333333
    """
    both = Counter({one: round(share * n) for one, share in true.items()})
    both.update({one: round(share * m) for one, share in predicted.items()})
    times = Counter(both.values())  # few: most values come once or twice
    deviations = sum(values * _deviation(count, n, m) for count, values in times.items())
    return deviations * (1 / n + 1 / m) / 2


def _deviation(count: int, n: int, m: int) -> float:
    """The mean absolute deviation of how many of ``count`` are among ``n`` of ``n + m``."""
    x = count * n // (n + m) + 1
    if x > min(count, n):  # it is always the mean
        return 0.0
    log_ways = _log_choose(count, x) + _log_choose(n + m - count, n - x)
    return 2 * x * (m - count + x) / (n + m) * exp(log_ways - _log_choose(n + m, n))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
