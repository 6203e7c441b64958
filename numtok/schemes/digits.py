"""digits: a number character by character, exactly as written. ``-60.2`` -> ``- 6 0 . 2``."""

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.numerals.column import Numerals, value_of
from numtok.schemes.base import Bounds, Decoded, Encoded, Failure, Next, Outcome, Scheme

_CHARACTERS = "0123456789+-.eE,%\u2212"
_EXTRAS = {"NAN": np.nan, "+INF": np.inf, "-INF": -np.inf}
_NUMERAL = re.compile(
    "[-+\u2212]?"
    r"(?:(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]+|\.(?=[eE]))?|\.[0-9]+)"
    r"(?:[eE][-+]?[0-9]+)?%?"
)
# Whatever can still become a numeral does so with one of these behind it.
_TAILS = ("", "0", "00", "000", "e0")

_DROPPED = 255
_ID_OF_BYTE = np.full(256, _DROPPED, np.uint8)
_ID_OF_BYTE[list(_CHARACTERS[:-1].encode())] = range(len(_CHARACTERS) - 1)
_ID_OF_BYTE[0xE2] = len(_CHARACTERS) - 1  # of the three bytes of U+2212 only the first counts


@dataclass(frozen=True)
class Digits(Scheme):
    """One token a character of the literal, with any number of digits: nothing is lost.

    Lengths vary, so the number of masks of a masked number tells how long it is; the xVal paper
    (Appendix B.3) shows models that exploit this.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 1"
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-60.20", "- 6 0 . 2 0", "-60.20"),
        ("1e400", "1 e 4 0 0", "1e400"),
        ("007", "0 0 7", "007"),
        ("\u22121,234%", "\u2212 1 , 2 3 4 %", "\u22121,234%"),
    )
    digest: ClassVar[str] = "5a634c1c78cca40a"

    @property
    def counted(self) -> int:
        return len(_CHARACTERS)

    @property
    def tokens_per_number(self) -> None:
        return None

    @property
    def bounds(self) -> Bounds:
        return Bounds(0.0, np.inf)

    @property
    def relative_error(self) -> float:
        return 0.0

    def vocabulary(self) -> tuple[str, ...]:
        return (*_CHARACTERS, *_EXTRAS)

    def encode(self, numerals: Numerals) -> Encoded:
        data, starts, ends = numerals.literals
        widths = ends - starts
        bounds = np.concatenate([[0], np.cumsum(widths, dtype=np.int64)])
        flat = np.repeat(starts - bounds[:-1], widths) + np.arange(bounds[-1])
        tokens = _ID_OF_BYTE[data[flat]]
        outcomes = np.zeros(len(numerals), np.uint8)

        above, _ = numerals.out_of_float64()
        wordy = np.flatnonzero(~np.isfinite(numerals.values) & ~above)  # nan, inf, -inf
        for index in wordy:
            value = numerals.values[index]
            extra, outcome = (
                (0, Outcome.NAN)
                if np.isnan(value)
                else (1, Outcome.POSITIVE_INFINITY)
                if value > 0
                else (2, Outcome.NEGATIVE_INFINITY)
            )
            outcomes[index] = outcome
            tokens[bounds[index] : bounds[index + 1]] = _DROPPED
            tokens[bounds[index]] = self.counted + extra

        kept = tokens != _DROPPED
        before = np.concatenate([[0], np.cumsum(kept)])
        lengths = np.diff(before[bounds]).astype(np.int32)
        return Encoded(tokens[kept].astype(np.uint32), lengths, outcomes)

    def decode(
        self,
        tokens: NDArray[np.uint32],
        lengths: NDArray[np.int32],
        channel: NDArray[np.float32] | None = None,
    ) -> Decoded:
        names = (*self.vocabulary(), "?")
        values = np.full(len(lengths), np.nan)
        failures = np.full(len(lengths), Failure.MALFORMED, np.uint8)
        written = []
        known = np.minimum(tokens, len(names) - 1).tolist()
        end = 0
        for index, length in enumerate(lengths.tolist()):
            literal = "".join([names[token] for token in known[end : end + length]])
            end += length
            if length == 1 and literal in _EXTRAS:
                value = _EXTRAS[literal]
                literal = repr(value)
            elif _NUMERAL.fullmatch(literal):
                value = value_of(literal)
            else:
                value = None
            if value is not None:
                values[index] = value
                failures[index] = Failure.NONE
            written.append(literal)
        return Decoded(values, failures, tuple(written))

    def next(self, prefix: tuple[int, ...]) -> Next:
        names = self.vocabulary()
        allowed = np.zeros(len(names), np.bool_)
        if prefix and prefix[0] >= self.counted:
            return Next(allowed, may_end=True)
        so_far = "".join(names[token] for token in prefix)
        for token, character in enumerate(_CHARACTERS):
            allowed[token] = any(_NUMERAL.fullmatch(so_far + character + tail) for tail in _TAILS)
        allowed[self.counted :] = not prefix
        return Next(allowed, may_end=_NUMERAL.fullmatch(so_far) is not None)

    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        value = float(
            self.decode(np.array(tokens, np.uint32), np.array([len(tokens)], np.int32)).values[0]
        )
        return Bounds(value, value)
