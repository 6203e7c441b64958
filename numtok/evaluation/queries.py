"""Which numbers of a split a model is asked for, and which of them together."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints
from numtok.encoding.dataset import EncodedSplit
from numtok.numerals.literals import resolution


class Queries(NamedTuple):
    """``q`` queries, each a row and the numbers that are asked for in it together."""

    rows: Ints  # [q]
    numbers: Ints  # [a] index in the split
    queries: Ints  # [a] which query each belongs to, ascending
    targets: Ints  # [a] index among the split's targets, -1 if it is none


def queries_of(samples: EncodedSplit, causal: bool) -> Queries:
    """The targets of each row, or each number in turn.

    A ``causal`` model sees none of them before it says it, so all of a row are one query.
    """
    counts = np.diff(samples.number_rows)
    with_targets = np.zeros(len(samples), np.bool_)
    with_targets[samples.target_row] = True
    row_of_number = np.repeat(np.arange(len(samples)), counts)
    others = np.flatnonzero(~with_targets[row_of_number])
    numbers = np.concatenate([samples.targets, others])
    rows = np.concatenate([samples.target_row, row_of_number[others]])
    targets = np.concatenate([np.arange(len(samples.targets)), np.full(len(others), -1)])
    order = np.lexsort((numbers, rows))
    numbers, rows, targets = numbers[order], rows[order], targets[order]
    together = np.zeros(len(rows), np.bool_)
    together[1:] = (rows[1:] == rows[:-1]) & (causal | (targets[1:] >= 0))
    queries = np.cumsum(~together) - 1
    return Queries(rows[~together], numbers, queries, targets)


def target_names(samples: EncodedSplit, asked: Queries) -> NDArray[np.object_]:
    """[a] the name of each target; ``number`` for a number that is none."""
    names = np.array([*samples.target_name.to_pylist(), "number"], object)
    return names[asked.targets]  # -1 is the last one


def number_names(samples: EncodedSplit) -> NDArray[np.object_]:
    """[n] of every number the name of the target that it is; ``number`` where it is none."""
    names = np.full(len(samples.numbers), "number", object)
    names[samples.targets] = samples.target_name.to_pylist()
    return names


def resolutions(samples: EncodedSplit) -> Floats:
    """Of each number of a split that is a target, what a unit of its last written digit is worth;
    NaN for the others, whose digits are not kept, and where float64 holds no value."""
    found = np.full(len(samples.numbers), np.nan)
    literals = samples.target_literal.to_pylist()
    for number, literal in zip(samples.targets.tolist(), literals, strict=True):
        if np.isfinite(samples.numbers[number]):
            found[number] = resolution(literal)
    return found
