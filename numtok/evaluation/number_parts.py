"""Sign, mantissa and exponent of numbers: errors in each part, and frequencies of its values.

True and predicted numbers are first rounded to the same number of significant digits, regardless of
the scheme. With three digits, ``-0.0602`` has the parts ``-``, ``602`` and ``E-4``.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import exp, lgamma
from typing import NamedTuple

from numtok.metrics.base import Predictions
from numtok.numerals.literals import round_literal

KINDS = ("right", "mantissa", "exponent", "sign", "several", "no number")


class NumberParts(NamedTuple):
    """Sign, mantissa and exponent of a rounded number, such as ``-``, ``602`` and ``E-4``.

    The mantissa is an integer with as many digits as the number was rounded to. For zero, it is
    ``0``, and the other parts are empty.
    """

    sign: str
    mantissa: str
    exponent: str

    @classmethod
    def of(cls, literal: str, digits: int) -> "NumberParts":
        """Round a number to ``digits`` significant digits, with ties to even, and split it into
        parts.

        >>> tuple(NumberParts.of("-0.06025", 3))
        ('-', '602', 'E-4')
        """
        negative, mantissa, exponent = round_literal(literal, digits)
        if not mantissa:
            return cls("", "0", "")
        return cls("-" if negative else "", str(mantissa), f"E{exponent}")

    @property
    def size(self) -> str:
        """Mantissa and exponent as one string, such as ``"602E-4"``."""
        return self.mantissa + self.exponent

    @property
    def power(self) -> int:
        """Exponent as an integer, such as -4; 0 for zero."""
        return int(self.exponent[1:] or 0)


def decimal_parts(
    answers: Predictions, digits: int
) -> tuple[list[NumberParts], list[NumberParts | None]]:
    """Return the parts of all true values and predictions, after rounding them to ``digits``
    significant digits. Predictions that are not numbers are None."""
    literals = list(answers.literals())
    predictions = [
        predicted if predicted is None else NumberParts.of(predicted, digits)
        for _, predicted in literals
    ]
    return [NumberParts.of(truth, digits) for truth, _ in literals], predictions


def kind(truth: NumberParts, prediction: NumberParts | None) -> str:
    """Return the kind of a prediction, one of :data:`KINDS`, according to which of its parts are
    wrong.

    Numbers on the two sides of a power of ten, such as 0.999 and 1.00, can be neighbors although
    both mantissa and exponent differ. A prediction that is such a neighbor of the true value counts
    as ``right``. In a prediction that is further away, such as 0.998, both parts are wrong.

    >>> truth = NumberParts.of("1.00", 3)
    >>> [kind(truth, NumberParts.of(text, 3)) for text in ("0.999", "1.01", "0.998", "0.1", "0")]
    ['right', 'mantissa', 'several', 'exponent', 'several']
    """
    if prediction is None:
        return "no number"
    wrong = [
        part
        for part, true_part, predicted_part in zip(
            NumberParts._fields, truth, prediction, strict=True
        )
        if true_part != predicted_part
    ]
    if not wrong or _carried(truth, prediction):
        return "right"
    return wrong[0] if len(wrong) == 1 else "several"


def _carried(first: NumberParts, second: NumberParts) -> bool:
    """Return whether two numbers are adjacent and one of them is a power of ten, such as ``999E-3``
    and ``100E-2``."""
    low, high = sorted((first, second), key=lambda number: number.power)
    nines, tens = "9" * len(low.mantissa), "1".ljust(len(low.mantissa), "0")
    return (
        (low.sign, low.mantissa, high.mantissa) == (high.sign, nines, tens)
        and high.power == low.power + 1
        and bool(low.exponent and high.exponent)
    )


class PartShares(NamedTuple):
    """Relative frequencies of mantissas, of exponents, and of numbers without their sign, each
    keyed by its text, such as ``602E-4`` for a number."""

    mantissa: Mapping[str, float]
    exponent: Mapping[str, float]
    number: Mapping[str, float]

    @classmethod
    def of(cls, numbers: Sequence[NumberParts]) -> "PartShares":
        """Compute the relative frequencies in a sample of numbers.

        >>> PartShares.of([NumberParts.of("0.1", 1), NumberParts.of("-0.2", 1)]).exponent
        {'E-1': 1.0}
        """

        def shares(values: Iterable[str]) -> dict[str, float]:
            return {value: count / len(numbers) for value, count in Counter(values).items()}

        return cls(
            shares(number.mantissa for number in numbers),
            shares(number.exponent for number in numbers),
            shares(number.size for number in numbers),
        )


def by_chance(true: Mapping[str, float], predicted: Mapping[str, float], n: int, m: int) -> float:
    """Return the total variation distance expected by chance between ``n`` true and ``m`` predicted
    values, given the relative frequency of each value.

    This is the mean under a permutation test: over all ways to choose which ``n`` of the ``n + m``
    values are the true ones.

    For a value that occurs k times in total, its count among the true values is hypergeometric. The
    mean absolute deviation has a closed form, like de Moivre's for the binomial (Diaconis & Zabell
    1991): 2 x (m - k + x) / (n + m) times the probability of x, where x is the first integer above
    the mean.

    >>> round(by_chance({"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.5}, 2, 2), 6)  # 1, or 4 times 0
    0.333333
    """
    both = Counter({value: round(share * n) for value, share in true.items()})
    both.update({value: round(share * m) for value, share in predicted.items()})
    times = Counter(both.values())  # small, since most values occur once or twice
    total = sum(values * _mean_absolute_deviation(count, n, m) for count, values in times.items())
    return total * (1 / n + 1 / m) / 2


def _mean_absolute_deviation(count: int, n: int, m: int) -> float:
    """Return the mean absolute deviation of a hypergeometric count.

    The count is the number of ``count`` marked items in a sample of ``n`` from ``n + m`` items.
    """
    x = count * n // (n + m) + 1
    if x > min(count, n):  # the number always equals the mean
        return 0.0
    log_ways = _log_choose(count, x) + _log_choose(n + m - count, n - x)
    return 2 * x * (m - count + x) / (n + m) * exp(log_ways - _log_choose(n + m, n))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
