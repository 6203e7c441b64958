"""tst: groups of three digits, each with a magnitude marker. ``1234.5`` -> ``1 k 234 . 5 p``."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, zip_longest
from typing import ClassVar

import numpy as np

from numtok.encoding.numeral_states import BEGIN, EXTRA, FOLLOWS
from numtok.encoding.schemes._digits import DigitTokens
from numtok.encoding.schemes._literals import Follows, Marks, Spelt, mantissa_digits, parts_of
from numtok.encoding.schemes.base import SchemeDefaults

_DIGITS = "0123456789"
_THOUSANDS = ("k", "m", "b", "t", "q")  # 10^3 to 10^15
_THOUSANDTHS = ("p", "pp", "ppp", "pppp", "ppppp")  # 10^-3 to 10^-15
_FIRST = ("one digit", "two digits", "three digits")
_AS_WRITTEN = ("sign", "leading point", "point", "e", "signed exponent", "exponent", "percent")
_BEHIND_FRACTION = {some: to for some, to in FOLLOWS["fraction"].items() if some != _DIGITS}
_BEHIND_WHOLE = {".": "point"} | _BEHIND_FRACTION


@dataclass(frozen=True)
class TstScheme(DigitTokens):
    """Triadic Suffix Tokenization (Chetverina 2026), with markers as separate tokens.

    Digits are grouped in threes (triads) outward from the decimal point. Each triad is followed by
    a marker for its magnitude: ``k`` for thousands, ``m``, ``b``, ``t``, and ``q`` for
    quadrillions; for decimals, ``p`` repeated once per triad from the point. Units and exponents
    have no marker.

    The scheme is lossless, so the last triad of a fraction may be short; the paper pads it with
    zeros. Markers range from 10^-15 to 10^18; triads beyond this range use the outermost marker.
    The names of the markers are not from the paper.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Chetverina (arXiv 2604.11582), abstract: with suffix markers"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(digits=False)  # marks are between digits
    chunk: ClassVar[int] = 3
    reverse: ClassVar[bool] = False
    pad: ClassVar[int] = 0
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("1234567.8901", "1 m 234 k 567 . 890 p 1 pp", "1234567.8901"),
        ("-60.25", "- 60 . 25 p", "-60.25"),
        ("12,345%", "12 k , 345 %", "12,345%"),
        ("5e-1234", "5 e - 1 234", "5e-1234"),
        (
            "1234567890123456789012.5",
            "1 q 234 q 567 q 890 t 123 b 456 m 789 k 012 . 5 p",
            "1234567890123456789012.5",
        ),
    )
    digest: ClassVar[str] = "d0b05daa28f81e19"

    @property
    def marks(self) -> tuple[str, ...]:
        return _THOUSANDS + _THOUSANDTHS

    @property
    def pieces(self) -> tuple[str, ...]:
        return super().pieces + self.marks

    @cached_property
    def follows(self) -> Follows:
        after = {BEGIN: FOLLOWS[""]} | {state: FOLLOWS[state] for state in _AS_WRITTEN}
        behind_first = {mark: f"behind first {mark}" for mark in _THOUSANDS}
        for state, longer in zip_longest(_FIRST, _FIRST[1:]):
            digit = {_DIGITS: longer} if longer else {}
            after[state] = digit | behind_first | _BEHIND_WHOLE
        for mark, lower in zip(_THOUSANDS, ("", *_THOUSANDS), strict=False):
            after[f"behind first {mark}"] = {_DIGITS: f"{mark} 1", ",": f"{mark}, 0"}
            after[f"behind {mark}"] = {_DIGITS: f"{mark} 1"}
            after[f"behind {mark},"] = {",": f"{mark}, 0"}
            own = (lower, mark) if mark == _THOUSANDS[-1] else (lower,)
            for comma in ("", ","):
                for count in range(3):
                    after[f"{mark}{comma} {count}"] = {_DIGITS: f"{mark}{comma} {count + 1}"}
                marked = {suffix: f"behind {suffix}{comma}" for suffix in own}
                after[f"{mark}{comma} 3"] = marked if lower else _BEHIND_WHOLE
        for state in ("leading point", "point"):
            after[state] = after[state] | {_DIGITS: f"{_THOUSANDTHS[0]} 1"}
        for mark, finer in pairwise((*_THOUSANDTHS, _THOUSANDTHS[-1])):
            for count in (1, 2):
                after[f"{mark} {count}"] = {_DIGITS: f"{mark} {count + 1}", mark: "short"}
            after[f"{mark} 3"] = {mark: f"behind {mark}"}
            after[f"behind {mark}"] = {_DIGITS: f"{finer} 1"} | _BEHIND_FRACTION
        after["short"] = _BEHIND_FRACTION
        fractions = {f"behind {mark}" for mark in _THOUSANDTHS} | {"short"}
        units = {f"{_THOUSANDS[0]} 3", f"{_THOUSANDS[0]}, 3"}
        ends = {*_FIRST, "exponent", "percent", EXTRA}
        return Follows(after, frozenset(ends | fractions | units))

    def literal(self, pieces: Sequence[str]) -> str:
        return super().literal([piece for piece in pieces if piece not in self.marks])

    def marked(self, spelt: Spelt) -> Marks:
        parts = parts_of(spelt)
        at, part, left = mantissa_digits(spelt, parts)
        last = left == np.minimum(-parts.decimals[part], -1)
        chosen = (left != 0) & ((left % 3 == 0) | last)
        nth = np.where(left > 0, left // 3, -(left // 3))[chosen]  # triad from the point, 1 on
        nth = np.minimum(nth, len(_THOUSANDS)) - 1
        first = len(super().pieces) + np.where(left[chosen] > 0, 0, len(_THOUSANDS))
        return Marks(at[chosen] + 1, parts.number[part[chosen]], (first + nth).astype(np.uint32))
