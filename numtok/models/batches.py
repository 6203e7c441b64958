"""Padded batches of rows, in an order that depends only on the seed and the epoch.

Step 1,234 has the same batch whether a run starts at that step or at step 0 (see ``numtok.seeds``).
A run can therefore resume at any step, and its batches do not depend on the number of processes
that prepare them.
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
_BUCKET = 64  # maximum number of batches that are sorted by length together
_BUCKETS = 8  # minimum number of buckets, so that different rows meet in every epoch


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch:
    """A batch of ``B`` rows, padded to the ``L`` tokens of the longest row, and the ``M`` numbers
    in them.

    Arrays of length M contain one item per number, in the order of the rows.
    """

    tokens: NDArray[np.int64]  # [B, L], PAD after the end of a row
    lengths: NDArray[np.int64]  # [B]
    answer_start: NDArray[np.int64]  # [B], -1 if none
    label: NDArray[np.int64]  # [B] index of the class, -1 if none
    number: NDArray[np.int64]  # [M] index among all numbers of the split
    number_row: NDArray[np.int64]  # [M] row of the batch
    number_start: NDArray[np.int64]  # [M] token index in the row
    number_length: NDArray[np.int64]  # [M]
    number_value: Channel  # [M] target of a number head: normalized, NaN if none
    number_raw: NDArray[np.float64]  # [M] as in the text, for heads with such targets
    channel: bool  # whether the value is also an input, at the number's first token
    is_target: NDArray[np.bool_]  # [M]

    @property
    def real(self) -> NDArray[np.bool_]:
        """bool[B, L]: True for tokens that are not padding.

        In an empty row, the first padding token counts as real, because attention needs at least
        one token.
        """
        return np.arange(self.tokens.shape[1]) < np.maximum(self.lengths, 1)[:, None]

    def values(self) -> Channel:
        """Return the input values [B, L]: the value of a number at its first token, and 1 at all
        other tokens.

        The result is also 1 for numbers without a value, and 1 everywhere if ``channel`` is False.
        Its dtype is that of ``number_value``.
        """
        values = np.ones(self.tokens.shape, self.number_value.dtype)
        if self.channel:
            visible = np.where(np.isnan(self.number_value), np.float32(1), self.number_value)
            values[self.number_row, self.number_start] = visible
        return values

    def valued(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return bool[M], True for the numbers that are chosen (bool[M]) and have a value."""
        return chosen & ~np.isnan(self.number_value)

    def number_tokens(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return bool[B, L], True for the tokens of the chosen numbers (bool[M])."""
        inside = np.zeros(self.tokens.shape, np.bool_)
        rows, columns = positions(
            self.number_row[chosen], self.number_start[chosen], self.number_length[chosen]
        )
        inside[rows, columns] = True
        return inside


def positions(
    rows: NDArray[np.int64], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row and the column of every token in the given spans.

    >>> positions(np.array([4, 7]), np.array([2, 0]), np.array([2, 1]))
    (array([4, 4, 7]), array([2, 3, 0]))
    """
    return np.repeat(rows, lengths), ranges(starts, lengths)


def flush_right(tokens: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first ``lengths`` [n] tokens from each row of ``tokens`` [n, L], padded on the
    left.

    The result is int64[n, T], where T is the largest length.

    >>> flush_right(np.array([[7, 8, 9], [4, 5, 6]]), np.array([2, 1]))
    array([[7, 8],
           [0, 4]])
    """
    longest = int(lengths.max(initial=0))
    at = np.arange(longest) - longest + lengths[:, None]
    shifted = np.take_along_axis(tokens, np.maximum(at, 0), axis=1)
    return np.where(at >= 0, shifted, PAD)


class EpochSampler:
    """Sampler that divides the given rows into batches of ``size`` rows of similar length,
    reshuffled in each epoch.

    ``lengths`` contains the length of every row in the split. The last batch of an epoch may be
    smaller than the others. If ``filled`` is True, it is filled up with rows that are repeated
    within the epoch.
    """

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
        """Return the number of batches per epoch, including a smaller last one."""
        return -(-len(self._rows) // self._size)

    def at(self, seed: int, step: int) -> NDArray[np.int64]:
        """Return int64[b]: the row indices of the batch for a training step."""
        epoch, index = divmod(step, len(self))
        order = self._order(seed, epoch)
        rows = order[index * self._size : (index + 1) * self._size]
        if self._filled and len(rows) < self._size:
            rows = np.concatenate([rows, np.resize(order, self._size - len(rows))])
        return rows

    def row_count(self, steps: int) -> int:
        """Return the total number of rows in the batches of the first ``steps`` steps."""
        if self._filled:
            return steps * self._size
        epochs, rest = divmod(steps, len(self))
        return epochs * len(self._rows) + min(rest * self._size, len(self._rows))

    def _order(self, seed: int, epoch: int) -> NDArray[np.int64]:
        cached = self._epoch  # read once: another thread may be at another epoch
        if cached is None or cached[0] != (seed, epoch):
            cached = (seed, epoch), self._shuffled(generator(seed, "order", epoch))
            self._epoch = cached
        return cached[1]

    def _shuffled(self, random: np.random.Generator) -> NDArray[np.int64]:
        """Shuffle rows, sort them by length within buckets, and shuffle the batches.

        An incomplete batch comes last. Its rows are not sorted; otherwise it would always have the
        longest rows.
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
    """Batches of ``size`` rows from one split, built on demand.

    ``values`` is a function that returns the value head's targets for given numbers in the split.
    ``classes`` contains the labels that a model can predict; any other label counts as missing.
    """

    def __init__(
        self, samples: EncodedSplit, values: Values, size: int, classes: Sequence[str] = ()
    ) -> None:
        self._samples = samples
        self._values = values
        self._is_target = np.zeros(len(samples.numbers), np.bool_)
        self._is_target[samples.targets] = True
        self._label = samples.class_of(classes) if classes else None
        #: Sampler of all rows, in training order.
        self.order = EpochSampler(np.arange(len(samples)), samples.lengths, size)

    def __len__(self) -> int:
        """Return the number of batches per epoch."""
        return len(self.order)

    def at(self, seed: int, step: int) -> Batch:
        """Return the batch for a training step."""
        return self.of(self.order.at(seed, step))

    def of(self, rows: NDArray[np.int64]) -> Batch:
        """Return the given rows (int64[B]) as a batch."""
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
