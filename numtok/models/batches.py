"""Rows to padded batches, in an order that is a pure function of (seed, epoch).

Whoever asks for step 1,234 gets what a run from the start would have seen there (``seeds``), so a
run continues at any step and does not depend on how many processes prepare batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import ranges
from numtok.encoding.dataset import EncodedSplit, Values
from numtok.encoding.schemes.base import Channel
from numtok.seeds import generator

PAD = 0  # the id of schema.SPECIALS[0]
_BUCKET = 64  # batches that are sorted by length together, at most
_BUCKETS = 8  # of them at least, or the same rows would meet in every epoch


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch:
    """``B`` rows padded to the longest, ``L`` tokens; their ``M`` numbers flat, in order."""

    tokens: NDArray[np.int64]  # [B, L], PAD behind a row's end
    lengths: NDArray[np.int64]  # [B]
    answer_start: NDArray[np.int64]  # [B], -1 if none
    label: NDArray[np.int64]  # [B] index of its class, -1 if it has none
    number: NDArray[np.int64]  # [M] index among all numbers of the split
    number_row: NDArray[np.int64]  # [M] row of the batch
    number_start: NDArray[np.int64]  # [M] token index in the row
    number_length: NDArray[np.int64]  # [M]
    number_value: Channel  # [M] as a number head learns it: normalised, NaN if none
    number_raw: NDArray[np.float64]  # [M] as in the text, for heads that learn that
    channel: bool  # whether that value is also what goes in, at the number's first token
    is_target: NDArray[np.bool_]  # [M]

    @property
    def real(self) -> NDArray[np.bool_]:
        """bool[B, L]: not padding. An empty row keeps its first pad: attention needs something."""
        return np.arange(self.tokens.shape[1]) < np.maximum(self.lengths, 1)[:, None]

    def values(self) -> Channel:
        """[B, L], of the type of ``number_value``: the channel at a number's first token, 1
        everywhere else and where a number has no value."""
        values = np.ones(self.tokens.shape, self.number_value.dtype)
        if self.channel:
            known = np.where(np.isnan(self.number_value), np.float32(1), self.number_value)
            values[self.number_row, self.number_start] = known
        return values

    def valued(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[M]: those of the chosen numbers (bool[M]) of which a value can be learnt."""
        return chosen & ~np.isnan(self.number_value)

    def number_tokens(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[B, L]: the tokens of the chosen numbers (bool[M])."""
        inside = np.zeros(self.tokens.shape, np.bool_)
        rows, columns = positions(
            self.number_row[chosen], self.number_start[chosen], self.number_length[chosen]
        )
        inside[rows, columns] = True
        return inside


def positions(
    rows: NDArray[np.int64], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and column of every token of some spans.

    >>> positions(np.array([4, 7]), np.array([2, 0]), np.array([2, 1]))
    (array([4, 4, 7]), array([2, 3, 0]))
    """
    return np.repeat(rows, lengths), ranges(starts, lengths)


def flush_right(tokens: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n, T]: the first tokens of rows [n, L], as many as ``lengths`` [n] say, behind pads.

    >>> flush_right(np.array([[7, 8, 9], [4, 5, 6]]), np.array([2, 1]))
    array([[7, 8],
           [0, 4]])
    """
    longest = int(lengths.max(initial=0))
    at = np.arange(longest) - longest + lengths[:, None]
    found = np.take_along_axis(tokens, np.maximum(at, 0), axis=1)
    return np.where(at >= 0, found, PAD)


class EpochSampler:
    """Some rows of a split in batches of ``size``: shuffled anew each epoch, rows of like length
    together. ``lengths`` are those of all rows of the split. What lacks in the last batch of an
    epoch is left out, or, with ``filled``, rows of that epoch that come a second time."""

    def __init__(
        self,
        rows: NDArray[np.int64],
        lengths: NDArray[np.int64],
        size: int,
        *,
        filled: bool = False,
    ) -> None:
        self._rows = rows
        self._lengths = lengths
        self._size = size
        self._filled = filled
        self._epoch: tuple[tuple[int, int], NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        """Batches in one pass over the rows, the last one counted in."""
        return -(-len(self._rows) // self._size)

    def at(self, seed: int, step: int) -> NDArray[np.int64]:
        """int64[rows of the batch]: those of a step."""
        epoch, index = divmod(step, len(self))
        order = self._order(seed, epoch)
        found = order[index * self._size : (index + 1) * self._size]
        if self._filled and len(found) < self._size:
            found = np.concatenate([found, np.resize(order, self._size - len(found))])
        return found

    def row_count(self, steps: int) -> int:
        """How many rows so many steps have: the last batch of an epoch may be smaller."""
        if self._filled:
            return steps * self._size
        epochs, rest = divmod(steps, len(self))
        return epochs * len(self._rows) + min(rest * self._size, len(self._rows))

    def _order(self, seed: int, epoch: int) -> NDArray[np.int64]:
        known = self._epoch  # read once: another thread may be at another epoch
        if known is None or known[0] != (seed, epoch):
            known = (seed, epoch), self._shuffled(generator(seed, "order", epoch))
            self._epoch = known
        return known[1]

    def _shuffled(self, random: np.random.Generator) -> NDArray[np.int64]:
        """Shuffle rows, sort them by length within buckets, and shuffle the batches.

        The smaller batch comes last. Its rows are left unsorted, or it would be the longest rows
        that are in it each time.
        """
        rows = self._rows[random.permutation(len(self._rows))]
        whole = len(rows) // self._size * self._size
        bucket = max(1, min(_BUCKET, len(rows) // self._size // _BUCKETS)) * self._size
        for begin in range(0, whole, bucket):
            part = rows[begin : min(begin + bucket, whole)]
            part[:] = part[np.argsort(self._lengths[part], kind="stable")]
        batches = rows[:whole].reshape(-1, self._size)
        return np.concatenate([batches[random.permutation(len(batches))].reshape(-1), rows[whole:]])


class Batches:
    """The rows of one split as batches of ``size`` rows.

    ``values`` says what a number head learns for some numbers of the split, ``classes`` what
    labels there are: others are as none.
    """

    def __init__(
        self, samples: EncodedSplit, values: Values, size: int, classes: Sequence[str] = ()
    ) -> None:
        self._samples = samples
        self._values = values
        self._is_target = np.zeros(len(samples.numbers), np.bool_)
        self._is_target[samples.targets] = True
        self._label = samples.class_of(classes) if classes else None
        #: All rows, in the order in which training meets them.
        self.order = EpochSampler(np.arange(len(samples)), samples.lengths, size)

    def __len__(self) -> int:
        """Batches in one pass over the rows."""
        return len(self.order)

    def at(self, seed: int, step: int) -> Batch:
        """The batch of a training step."""
        return self.of(self.order.at(seed, step))

    def of(self, rows: NDArray[np.int64]) -> Batch:
        """These rows (int64[B]) as one batch."""
        samples = self._samples
        lengths = samples.token_rows[rows + 1] - samples.token_rows[rows]
        tokens = np.full((len(rows), int(lengths.max(initial=0))), PAD, np.int64)
        tokens[np.arange(tokens.shape[1]) < lengths[:, None]] = samples.tokens[
            ranges(samples.token_rows[rows], lengths)
        ]
        counts = samples.number_rows[rows + 1] - samples.number_rows[rows]
        number = ranges(samples.number_rows[rows], counts)
        return Batch(
            tokens=tokens,
            lengths=lengths,
            answer_start=samples.answer_start[rows].astype(np.int64),
            label=np.full(len(rows), -1) if self._label is None else self._label[rows],
            number=number,
            number_row=np.repeat(np.arange(len(rows)), counts),
            number_start=samples.number_start[number].astype(np.int64),
            number_length=samples.number_length[number].astype(np.int64),
            number_value=self._values(number),
            number_raw=samples.numbers[number],
            channel=samples.channel is not None,
            is_target=self._is_target[number],
        )
