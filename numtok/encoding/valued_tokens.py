"""The tokens of a vocabulary that stand for one or more digits, and their values."""

import re
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from numtok.arrays import Bools, Floats, Ints

#: ASCII digits, possibly with whitespace before them. ``5.`` does not match, because it is not only
#: digits; ``²`` and ``½`` do not match, because they are not digits of a decimal number.
_DIGITS = re.compile(r"(\s*)([0-9]+)")
_LARGEST = 1e15  # largest value of a token; squared distances stay finite in float32


class ValuedTokens(NamedTuple):
    """The T tokens of a vocabulary that stand for one or more digits, in ascending order of value.

    ids, values
        [T]: ids of the tokens, and the number that the digits of each token spell.
    forms
        [T]: index of each token's form. Tokens of the same form can replace each other: they have
        the same number of digits (unlike ``1`` and ``01``) and the same whitespace before the
        digits (unlike ``5`` and `` 5``). All forms are 0 if no two tokens have the same value.
    begins
        [T]: True for tokens with whitespace before the digits, which begin a number.
    lengths
        [T]: number of digits in each token.
    points
        [P]: ids of the tokens that are a decimal point.
    """

    ids: Ints
    values: Floats
    forms: Ints
    begins: Bools
    lengths: Ints
    points: Ints

    @classmethod
    def of_texts(cls, texts: Sequence[str | None], first: int = 0) -> Self:
        """Return the tokens that have a value. ``texts`` contains the texts of all tokens, ordered
        by id; the ids start at ``first``.

        Tokens with a value above 1e15, which have many digits and are rare, are left out.

        >>> found = ValuedTokens.of_texts(["a", " 12", "12", ".", "5.", "7", "\u00b2", None])
        >>> found.ids.tolist(), found.values.tolist()
        ([5, 1, 2], [7.0, 12.0, 12.0])
        >>> found.forms.tolist(), found.begins.tolist(), found.points.tolist()
        ([0, 2, 1], [False, True, False], [3])
        """
        matches = [None if text is None else _DIGITS.fullmatch(text) for text in texts]
        digits = {
            token: match
            for token, match in enumerate(matches, first)
            if match and float(match[2]) <= _LARGEST
        }
        return cls._ordered(
            np.array([*digits], np.int64),
            np.array([float(match[2]) for match in digits.values()], np.float64),
            [(match[1], len(match[2])) for match in digits.values()],
            [first + token for token, text in enumerate(texts) if text and text.strip() == "."],
        )

    @classmethod
    def of_names(cls, names: Sequence[str], values: Floats, first: int) -> Self:
        """Return the tokens whose value in ``values`` [k] is not NaN. ``names`` [k] contains the
        names of all tokens, ordered by id; the ids start at ``first``."""
        tokens = np.flatnonzero(~np.isnan(values))
        return cls._ordered(
            first + tokens,
            values[tokens],
            [("", len(names[token])) for token in tokens.tolist()],
            [first + token for token, name in enumerate(names) if name == "."],
        )

    @classmethod
    def _ordered(
        cls, ids: Ints, values: Floats, forms: Sequence[tuple[str, int]], points: Sequence[int]
    ) -> Self:
        """Order tokens by value. ``forms`` has the whitespace and the digit count of each token."""
        order = np.argsort(values, kind="stable")
        index = {form: number for number, form in enumerate(sorted(set(forms)))}
        numbered = np.array([index[form] for form in forms], np.int64)
        is_unique = len(np.unique(values)) == len(values)
        return cls(
            ids=ids[order],
            values=values[order],
            forms=np.zeros_like(ids) if is_unique else numbered[order],
            begins=np.array([bool(before) for before, _ in forms], np.bool_)[order],
            lengths=np.array([length for _, length in forms], np.int64)[order],
            points=np.array(points, np.int64),
        )

    def single_digits(self) -> Self:
        """Return only the tokens that are a single digit without whitespace."""
        chosen = (self.lengths == 1) & ~self.begins
        return self._replace(
            ids=self.ids[chosen],
            values=self.values[chosen],
            forms=np.zeros(chosen.sum(), np.int64),
            begins=self.begins[chosen],
            lengths=self.lengths[chosen],
        )
