"""Checks that every place part must pass: ``numtok check place NAME``.

The digit positions are applied to made-up rows of every scheme that has digit tokens.
"""

from collections.abc import Iterator

import numpy as np

from numtok.arrays import Ints
from numtok.contracts import (
    check_declared,
    check_settings,
    checks_of,
    expect,
    expect_array,
    expect_kind,
    require,
)
from numtok.models.made_up import accepted, made_up
from numtok.models.places.base import PLACES, DigitPlaces, PlaceTable
from numtok.models.training_batch import shift_right

_WIDTH = 8


def _tables(places: DigitPlaces) -> Iterator[tuple[str, PlaceTable, Ints]]:
    """Yield, for each accepted scheme, its table, with original and shifted rows."""
    tables = accepted(places, "numbers", lambda vocabulary: PlaceTable(places, vocabulary, _WIDTH))
    for scheme, _, table in tables:
        batch = made_up(scheme)
        yield scheme, table, batch.tokens
        yield scheme, table, shift_right(batch)[0]


def check_declarations(places: DigitPlaces, seed: int) -> None:
    """All declarations exist."""
    check_declared(places, "declarations", revision=int, source=str)
    for name in ("offsets", "most"):
        got = expect_kind(places, name, getattr(places, name), int)
        require(places, "declarations", got >= 1, f"{name}: got {got}, expected at least 1")
    expect_kind(places, "offset_per_row", places.offset_per_row, bool)
    check_settings(PLACES, places, "declarations")


def check_numbers(places: DigitPlaces, seed: int) -> None:
    """Every index has a vector or is 0, also with training offsets; 0 stays 0."""
    for scheme, table, tokens in _tables(places):
        numbered = places.numbered(tokens, tokens > 9)
        expect_array(places, "numbered", numbered, tokens.shape, dtype="int64")
        plain = table.numbers(tokens)
        moved = table.numbers(tokens, shares=np.full((len(tokens), 2), 0.999))
        for numbers in (plain, moved):
            inside = bool(((numbers >= 0) & (numbers <= places.most)).all())
            message = f"{scheme}: got {numbers.tolist()}, expected 0 to {places.most}"
            require(places, "numbers", inside, message)
        same = np.array_equal(plain == 0, moved == 0)
        expect(places, "numbers", f"{scheme}: an index of 0 stays 0 with offsets", same, True)


def check_cache(places: DigitPlaces, seed: int) -> None:
    """A token has the same index in a whole row and after a cache, for any tokens after it."""
    for scheme, table, tokens in _tables(places):
        whole = table.numbers(tokens)
        for length in range(1, tokens.shape[1]):
            last = table.numbers(tokens[:, length : length + 1], tokens[:, :length])
            message = f"{scheme}: the index of token {length} after {length} cached ones"
            expect(places, "cache", message, last[:, 0].tolist(), whole[:, length].tolist())


CHECKS = checks_of(__name__)
