"""Queries: the numbers to predict in a split, grouped by which are predicted together."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints, ranges
from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.schemes.base import DecodedNumbers
from numtok.numerals.literals import resolution


class Queries(NamedTuple):
    """Queries for the numbers that a model predicts. A query consists of a row and the numbers in
    it that are predicted together. There are ``q`` queries, with ``a`` numbers in total."""

    rows: Ints  # [q]
    numbers: Ints  # [a] index of each number in the split
    queries: Ints  # [a] index of the query that each number belongs to, ascending
    targets: Ints  # [a] index among the split's targets, -1 if the number is not a target


def queries_of(samples: EncodedSplit, causal: bool) -> Queries:
    """Return the queries of a split: one for all targets of a row, or one for each number of a row
    without targets.

    A ``causal`` model predicts each number only from the text before it, so each row is a single
    query.
    """
    counts = np.diff(samples.number_rows)
    with_targets = np.zeros(len(samples), np.bool_)
    with_targets[samples.target_row] = True
    row_of_number = np.repeat(np.arange(len(samples)), counts)
    untargeted = np.flatnonzero(~with_targets[row_of_number])
    numbers = np.concatenate([samples.targets, untargeted])
    rows = np.concatenate([samples.target_row, row_of_number[untargeted]])
    targets = np.concatenate([np.arange(len(samples.targets)), np.full(len(untargeted), -1)])
    order = np.lexsort((numbers, rows))
    numbers, rows, targets = numbers[order], rows[order], targets[order]
    together = np.zeros(len(rows), np.bool_)
    together[1:] = (rows[1:] == rows[:-1]) & (causal | (targets[1:] >= 0))
    queries = np.cumsum(~together) - 1
    return Queries(rows[~together], numbers, queries, targets)


def target_names(samples: EncodedSplit, queries: Queries) -> NDArray[np.object_]:
    """Return the target name of each queried number, [a]; ``number`` if it is not a target."""
    names = np.array([*samples.target_name.to_pylist(), "number"], object)
    return names[queries.targets]  # -1 is the last one


def number_names(samples: EncodedSplit) -> NDArray[np.object_]:
    """Return the target name of every number, [n]; ``number`` if it is not a target."""
    names = np.full(len(samples.numbers), "number", object)
    names[samples.targets] = samples.target_name.to_pylist()
    return names


def decoded(codec: Codec, samples: EncodedSplit, numbers: Ints) -> DecodedNumbers:
    """Decode the stored tokens of numbers, given as indices [n] in the split."""
    lengths = samples.number_length[numbers]
    tokens = samples.tokens[ranges(samples.first_token(numbers), lengths)].astype(np.uint32)
    channel = None if samples.channel is None else samples.channel[numbers]
    local = tokens - np.uint32(codec.number_first)
    return codec.decode_numbers(local, lengths, channel, samples.in_answer[numbers])


def unwritten(numbers: Floats) -> list[str]:
    """Write numbers, float64[n], whose literals are not stored.

    Each is written as by Python's ``repr``, but integers without a decimal point.

    >>> unwritten(np.array([10.0, -0.5]))
    ['10', '-0.5']
    """
    return [repr(value).removesuffix(".0") for value in numbers.tolist()]


def resolutions(samples: EncodedSplit) -> Floats:
    """Return the resolution of each number, float64[n]: the value of one unit in its last written
    digit.

    It is NaN for numbers that are not targets (because their digits are not stored) and for numbers
    that are not finite.
    """
    units = np.full(len(samples.numbers), np.nan)
    literals = samples.target_literal.to_pylist()
    for number, literal in zip(samples.targets.tolist(), literals, strict=True):
        if np.isfinite(samples.numbers[number]):
            units[number] = resolution(literal)
    return units
