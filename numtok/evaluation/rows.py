"""Selected rows of encoded data: their numbers, and their texts without the numbers to predict."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from numtok.arrays import Ints, ranges
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import read_pieces
from numtok.seeds import generator
from numtok.store.artifact import Artifact

_MOST_CHARACTERS = 2000  # of a row; the middle of longer rows is left out


def sampled(rows: Ints, most: int, *seed: str | int) -> Ints:
    """Return all of ``rows`` [k], or an ascending random sample of ``most`` if there are more."""
    if len(rows) <= most:
        return rows
    return np.sort(generator(0, *seed).permutation(rows)[:most])


class Rows(NamedTuple):
    """Selected rows of one split of encoded data.

    samples
        Rows of the split that are in memory: the rows with the indices ``drawn``, or all rows if
        ``drawn`` is None.
    chosen
        Ascending indices int64[k] of the selected rows in ``samples``.
    """

    artifact: Artifact
    split: str
    samples: EncodedSplit
    chosen: Ints
    drawn: Ints | None = None

    @property
    def stored(self) -> Ints:
        """Indices of the selected rows in the stored split, int64[k]."""
        return self.chosen if self.drawn is None else self.drawn[self.chosen]

    @property
    def counts(self) -> Ints:
        """Counts of the numbers in each selected row, int64[k]."""
        return np.diff(self.samples.number_rows)[self.chosen]

    @property
    def numbers(self) -> Ints:
        """Indices in ``samples`` of all numbers in the selected rows, int64[n]."""
        return ranges(self.samples.number_rows[self.chosen], self.counts)

    def texts(self) -> Iterator[str]:
        """Yield the text of each selected row without its targets.

        Other numbers are written in Python's notation, integers without a decimal point, so that
        the text does not depend on the scheme. Of rows with more than 2,000 characters, the first
        and the last 1,000 are kept.
        """
        hidden = np.isin(self.numbers, self.samples.targets).tolist()
        begin = 0
        for pieces, values in read_pieces(self.artifact, self.split, self.stored):
            parts = [pieces[0]]
            for index, (value, piece) in enumerate(zip(values, pieces[1:], strict=True), begin):
                parts += ["" if hidden[index] else repr(value).removesuffix(".0"), piece]
            begin += len(values)
            yield _shortened("".join(parts))


def _shortened(text: str) -> str:
    if len(text) <= _MOST_CHARACTERS:
        return text
    half = _MOST_CHARACTERS // 2
    return f"{text[:half]} {text[-half:]}"
