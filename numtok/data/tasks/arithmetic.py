"""arithmetic: random expressions and their exact values. ``(1.32 * 32.1) = 42.372``."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isqrt

from numtok.data.tasks._expressions import Operands, Space, draw, shapes
from numtok.data.tasks.base import Made, TaskSplit, TextTask, setting
from numtok.errors import UsageError
from numtok.registry import spec_of

_DECIMAL = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
_FLAGS = {"places": "decimals"}  # settings whose option has another name
_SETTINGS_OF = {
    "tree": ("operands", "operators", "figures", "places", "low", "high"),
    "product": ("digits",),
}


@dataclass(frozen=True)
class Arithmetic(TextTask):
    """Random expressions and their exact values: trees of decimals or products of integers.

    ``kind=tree`` is the multi-operand task from xVal: a random binary tree with an operator at each
    node and a decimal at each leaf, all sampled uniformly and independently, such as
    ``((1.32 * 32.1) + (1.42 - 8.20)) = 35.592``. The paper does not state how operands are
    distributed. This task samples them uniformly from one of two sets:

    - ``figures=3`` (the default): decimals from ``low`` to ``high`` with exactly three significant
      digits, m * 10^e with 100 <= m <= 999. There are 1800 such decimals from 1.00 to 99.9, with
      all mantissas and both exponents equally likely. As in the paper's example, the zero of 8.20
      is kept.
    - ``decimals=2``: decimals from ``low`` to ``high`` with two decimal places. They may be
      negative: ``(1.42 - -8.20) = 9.62``.

    ``kind=product`` is the multiplication task from xVal, with two factors of exactly ``digits``
    digits: ``123 * 456 = 56088``.

    The value is exact and written without trailing zeros (``0.5``, not ``0.50``; ``0``).
    Expressions are sampled without replacement, so no text appears twice. A hash of the seed and
    the expression determines the split, ignoring the order of the operands of ``+`` and ``*``. Data
    sets with the same seed and ``--split`` therefore share no expressions between splits, even if
    their other settings differ. Rows have the target ``answer`` and the groups ``operands``,
    ``digits`` (of a product) and ``operator`` (of the root).

    >>> Arithmetic(operands=2).unit(0, TaskSplit("train", 1), 0).rows
    b'{"id":"train-0","text":"(7.55 + 5.28) = 12.83","targets":{"answer":[[16,21]]},\
"answer_start":16,"group":{"operands":2,"operator":"+"}}\\n'

    Raises UsageError if a setting is invalid, or if a value may not be exact in 64 bits.
    """

    revision = 1
    source = "xVal, section 3.1"
    unit_rows = 1 << 17
    digest = "993067a2d4045c8c"

    kind: str = setting("tree", "tree, or product (of two integers).", choices=("tree", "product"))
    operands: int = setting(3, "Number of operands (tree).", at_least=2, at_most=8)
    operators: str = setting("+-*", "Operators, some of +-*, equally likely (tree).")
    figures: int = setting(3, "Significant digits of each operand (tree).", at_least=1, at_most=18)
    places: int = setting(
        -1,
        "Decimal places of each operand, instead of figures; -1 uses figures (tree).",
        flag="decimals",
        formerly=("places",),
        at_least=-1,
        at_most=18,
    )
    low: str = setting("1.00", "Smallest operand; may be negative with decimals (tree).")
    high: str = setting("99.9", "Largest operand (tree).")
    digits: int = setting(3, "Digits of both factors (product).", at_least=1, at_most=9)
    spaces: bool = setting(True, "Spaces around operators and the equals sign.")

    def __post_init__(self) -> None:
        for kind, names in _SETTINGS_OF.items():
            for name in filter(self._is_changed, names):
                if kind != self.kind:
                    raise UsageError(
                        f"arithmetic: {_FLAGS.get(name, name)}={getattr(self, name)} only "
                        f"applies to kind={kind} (kind is {self.kind})"
                    )
        if self.places >= 0 and self._is_changed("figures"):
            raise UsageError(
                f"arithmetic: figures={self.figures} cannot be combined with "
                f"decimals={self.places}. Choose one"
            )
        distinct = set(self.operators)
        if not distinct or distinct - set("+-*") or len(distinct) < len(self.operators):
            raise UsageError(
                f"arithmetic: operators must be some of +-*, each once (got {self.operators})"
            )
        self._check_range()

    def _is_changed(self, name: str) -> bool:
        return bool(getattr(self, name) != type(self).__dataclass_fields__[name].default)

    def _check_range(self) -> None:
        """Check that there are operands, and that all possible values fit into int64."""
        for name in ("low", "high"):
            if not _DECIMAL.fullmatch(getattr(self, name)):
                raise UsageError(
                    f"arithmetic: {name} must be a decimal such as -1.5 with at most 18 digits on "
                    f"each side of the point (got {getattr(self, name)})"
                )
        low, high = Fraction(self.low), Fraction(self.high)
        if self.places < 0 and low <= 0:
            raise UsageError(
                f"arithmetic: low must be above 0 with figures={self.figures} (got {self.low}). "
                "For negative operands use decimals, such as decimals=2"
            )
        parts = self._operands()
        if not parts:
            form = f"figures={self.figures}" if self.places < 0 else f"decimals={self.places}"
            raise UsageError(
                f"arithmetic: no number from low={self.low} to high={self.high} has {form}. Choose "
                "a wider range"
            )
        # No part of a tree with k operands is larger than bound^k, because a + b <= ab from 2 on.
        # None has more than k times the decimal places of one operand, so aligned values also fit.
        places = max(part.places for part in parts)
        bound = max(abs(low), abs(high), Fraction(2)) * 10**places
        if self.kind == "tree" and bound**self.operands >= 2**63:
            raise UsageError(
                f"arithmetic: values of {self.operands} operands from {self.low} to {self.high} "
                f"with {places} decimal places may exceed 64 bits. Choose fewer operands, a "
                "smaller range or fewer decimal places"
            )

    def _operands(self) -> list[Operands]:
        if self.kind == "product":
            least = 10 ** (self.digits - 1)
            return [Operands(least, 9 * least, 1, 0)]
        low, high = Fraction(self.low), Fraction(self.high)
        if self.places >= 0:
            first, last = ceil(low * 10**self.places), floor(high * 10**self.places)
            return [Operands(first, last - first + 1, 1, self.places)] if first <= last else []
        return list(_with_figures(self.figures, low, high))

    @property
    def _space(self) -> Space:
        is_product = self.kind == "product"
        group = f'"operands":2,"digits":{self.digits}'
        return Space(
            shapes=("x?x",) if is_product else shapes(self.operands),
            operators="*" if is_product else self.operators,
            operands=self._operands(),
            spaces=self.spaces,
            group=group if is_product else f'"operands":{self.operands}',
        )

    @property
    def possible(self) -> int:
        return self._space.size

    def unit(self, seed: int, split: TaskSplit, index: int) -> Made:
        space, wanted = self._space, self.rows_of(split, index)
        # Enough samples for a whole unit of this split: 16 standard deviations above the mean. Only
        # the last unit of a split may need more, if there are few expressions.
        draws = ceil(self.unit_rows / split.share * (1 + 16 / isqrt(self.unit_rows)))
        is_last = (index + 1) * self.unit_rows >= split.rows
        end = space.size if is_last else min(space.size, (index + 1) * draws)
        positions = range(index * draws, end)
        rows = draw(space, seed, split, positions, row=index * self.unit_rows, wanted=wanted)
        if rows.count(b"\n") < wanted:
            raise UsageError(
                f"{spec_of(self)} has {space.size:,} different expressions, of which at most about "
                f"95% can be sampled: too few for {split.rows:,} in the split {split.name!r}. "
                "Reduce --rows, or choose settings with more expressions"
            )
        return Made(rows, {})


def _with_figures(figures: int, low: Fraction, high: Fraction) -> Iterator[Operands]:
    """Yield the numbers of a range with this many significant digits, by decimal exponent."""
    for exponent in range(-36, 19):
        unit = Fraction(10) ** exponent
        first = max(10 ** (figures - 1), ceil(low / unit))
        last = min(10**figures - 1, floor(high / unit))
        if first <= last:
            yield Operands(first, last - first + 1, 10 ** max(exponent, 0), max(-exponent, 0))
