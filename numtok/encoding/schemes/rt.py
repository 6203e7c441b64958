"""rt: one token per digit and decimal place. ``-60.2`` -> ``- _6_1_ _0_0_ . _2_-1_``."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from numtok.declaration import setting
from numtok.encoding.numeral_states import BEGIN, CHARACTERS, DIGITS, EXPONENTS, FOLLOWS, WHOLE
from numtok.encoding.schemes._literals import (
    Follows,
    LiteralScheme,
    mantissa_digits,
    parts_of,
    spell,
    with_extras,
)
from numtok.encoding.schemes.base import Encoded, SchemeDefaults
from numtok.numerals.column import Numerals

_MOST = 18  # digits on either side of the point
_KINDS = ("first", "plain", "grouped")  # of states before the point
_TOKEN = re.compile(r"_(\d)_(-?\d+)_")
_BEHIND_WHOLE = {symbol: to for symbol, to in FOLLOWS["fraction"].items() if symbol != DIGITS}


@dataclass(frozen=True)
class RtScheme(LiteralScheme):
    """Digits of the Regression Transformer (Born and Manica 2023): the token ``_d_p_`` is the digit
    d at the decimal place p, so it stands for d * 10^p.

    The scheme is lossless. Signs, the point, commas and exponents are written character by
    character, and the places of ``1.5e-12`` are those of its mantissa, 1.5. A mantissa with more
    digits than ``whole`` or ``decimals`` is written in digits without places.

    By default, ``encode`` sets both settings to the smallest values that fit the data. The
    published vocabulary has 6 digits before the point and 6 after it.

    whole, decimals
        Number of digits before and after the point that have tokens.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Born and Manica (2023); public code, terminator/tokenization.py"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(
        embedder="rt",
        digits=False,  # exponents have digits without a place
        sized=True,
    )
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("12.3", "_1_1_ _2_0_ . _3_-1_", "12.3"),
        ("-0.05", "- _0_0_ . _0_-1_ _5_-2_", "-0.05"),
        ("1,234%", "_1_3_ , _2_2_ _3_1_ _4_0_ %", "1,234%"),
        ("5.E+7", "_5_0_ . E + 7", "5.E+7"),
        ("1234567.5", "1 2 3 4 5 6 7 . 5", "1234567.5"),
        ("inf", "+INF", "inf"),
    )
    digest: ClassVar[str] = "02794505b0ac4ad8"
    whole: int = setting(6, at_least=1, at_most=_MOST)
    decimals: int = setting(6, at_least=0, at_most=_MOST)

    def suited(self, largest: float, decimals: int) -> "RtScheme":
        whole = min(len(str(int(largest))), _MOST)
        return replace(self, whole=whole, decimals=min(decimals, _MOST))

    @cached_property
    def marks(self) -> tuple[str, ...]:
        places = range(self.whole - 1, -self.decimals - 1, -1)
        return tuple(f"_{digit}_{place}_" for place in places for digit in DIGITS)

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        return (*CHARACTERS, *self.marks)

    @cached_property
    def follows(self) -> Follows:
        """Digits that have places descend one place at a time. Before the point, a state is the
        place of the last digit and one of three kinds: ``first`` group of digits, which a comma may
        end; ``plain`` without commas; ``grouped`` by commas."""
        begun: dict[str, str] = {}
        for place in range(self.whole):
            begun |= _digits(place, f"first {place}")
        after = FOLLOWS | {BEGIN: FOLLOWS[""] | begun, "sign": FOLLOWS["sign"] | begun}
        after |= {f"{kind} 0": {".": "placed point"} | _BEHIND_WHOLE for kind in _KINDS}
        for place in range(1, self.whole):
            ends_group = place % 3 == 0
            comma = {",": f"comma {place}"} if ends_group else {}
            grouped = _digits(place - 1, f"grouped {place - 1}")
            plain = _digits(place - 1, f"plain {place - 1}")
            first = plain if ends_group else _digits(place - 1, f"first {place - 1}")
            after |= {f"first {place}": first | comma, f"plain {place}": plain}
            after |= {f"grouped {place}": comma or grouped, f"comma {place}": grouped}
        begun = _digits(-1, "decimal -1") if self.decimals else {}
        after["leading point"] = FOLLOWS["leading point"] | begun
        after["placed point"] = {EXPONENTS: "e"} | begun
        decimals = [f"decimal {place}" for place in range(-1, -self.decimals - 1, -1)]
        for place, state in enumerate(decimals, 1):
            finer = _digits(-place - 1, f"decimal {-place - 1}") if place < self.decimals else {}
            after[state] = finer | _BEHIND_WHOLE
        return Follows(after, WHOLE | {f"{kind} 0" for kind in _KINDS} | {*decimals})

    def literal(self, pieces: Sequence[str]) -> str:
        return super().literal([piece[1] if piece[0] == "_" else piece for piece in pieces])

    def encode(self, numerals: Numerals) -> Encoded:
        spelt = spell(numerals)
        parts = parts_of(spelt)
        at, part, place = mantissa_digits(spelt, parts)
        has_places = (parts.digits <= self.whole) & (parts.decimals <= self.decimals)
        at, place = at[has_places[part]], place[has_places[part]]
        tokens = spelt.characters.astype(np.uint32)
        tokens[at] += (len(CHARACTERS) + 10 * (self.whole - 1 - place)).astype(np.uint32)
        return with_extras(tokens, spelt.lengths, spelt.outcomes, len(self.pieces))


def token_value(name: str) -> float | None:
    """Return the value of a digit token, or None for other tokens.

    >>> token_value("_2_-1_"), token_value("-")
    (0.2, None)
    """
    match = _TOKEN.fullmatch(name)
    return None if match is None else float(f"{match[1]}e{match[2]}")


def _digits(place: int, state: str) -> dict[str, str]:
    """Return the tokens of all digits at a decimal place, mapped to the state after them."""
    return {f"_{digit}_{place}_": state for digit in DIGITS}
