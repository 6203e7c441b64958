"""Copies of one encoded row that differ in one number, and the values that this number takes."""

from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints
from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.schemes.base import LOSSES
from numtok.errors import UsageError, unknown
from numtok.evaluation.queries import unwritten
from numtok.numerals.column import Numerals
from numtok.registry import spec_of


def row_index(row: str | None, samples: EncodedSplit, description: str) -> int:
    """Return the index of the row with the ID ``row``, or 0 (the first row) if ``row`` is None.

    Raises UsageError for an unknown ID; ``description`` describes the split in the message.
    """
    if row is None:
        return 0
    ids = samples.ids.to_pylist()
    if row not in ids:
        raise unknown(f"row of {description}", row, ids[:5], f"and so on, {len(ids):,} in all")
    return int(ids.index(row))


class PlaceRange(NamedTuple):
    """Range of the numbers at one index, over ``rows`` rows of the train split."""

    low: float
    high: float
    rows: int


def range_of_place(train: EncodedSplit, count: int, number: int) -> PlaceRange | None:
    """Return the range of the finite numbers at the index ``number`` in rows of the train split.

    Only rows with ``count`` numbers, as many as in the row to be varied, are used. Returns None if
    there are fewer than two distinct numbers.
    """
    rows = np.flatnonzero(np.diff(train.number_rows) == count)
    values = train.numbers[train.number_rows[rows] + number]
    values = values[np.isfinite(values)]
    if not len(values) or values.min() == values.max():
        return None
    return PlaceRange(float(values.min()), float(values.max()), len(values))


def evenly_spaced(low: float, high: float, points: int) -> Floats:
    """Return float64[points] evenly spaced from ``low`` to ``high``, rounded to about a thousandth
    of a step.

    Rounding keeps the numbers short. Otherwise, a scheme that writes all digits would write about
    sixteen digits per number.

    >>> evenly_spaced(0.0, 1.0, 4).tolist()
    [0.0, 0.3333, 0.6667, 1.0]
    """
    step = (high - low) / (points - 1)
    values = np.linspace(low, high, points)
    decimals = 3 - int(np.floor(np.log10(step)))
    if decimals > 300:  # 10 ** decimals would overflow
        return values
    return np.array([round(value, decimals) for value in values.tolist()])


def decimals_of(value: float) -> int:
    """Return the number of decimals in the shortest representation of a float; 0 if it is not
    finite.

    >>> decimals_of(80.0), decimals_of(0.25), decimals_of(1e22)
    (0, 2, 0)
    """
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def geometric(low: float, high: float, points: int, decimals: int) -> Floats:
    """Return distinct values from ``low`` to ``high``, float64[n], rounded to ``decimals`` decimal
    places.

    There are at most ``points`` values. They are evenly spaced on a logarithmic scale, or on a
    linear scale if ``low`` is not above 0.

    >>> geometric(1.0, 1000.0, 7, 0).tolist(), geometric(-1.0, 1.0, 3, 0).tolist()
    ([1.0, 3.0, 10.0, 32.0, 100.0, 316.0, 1000.0], [-1.0, 0.0, 1.0])
    """
    values = (np.geomspace if low > 0 else np.linspace)(low, high, points)
    return np.unique([round(value, decimals) for value in values.tolist()])


def written_alike(
    values: Floats, samples: EncodedSplit, row: int, number: int, codec: Codec
) -> Numerals:
    """Return values [n] as numerals in the notation of the number that they replace.

    Integers get ``.0`` only if the replaced number has a decimal point. Otherwise, a scheme
    that keeps numbers as written would receive a notation that does not occur in its data.
    """
    if codec.keeps_literals:
        among = slice(int(samples.number_rows[row]), int(samples.number_rows[row + 1]))
        tokens = samples.tokens[samples.token_rows[row] : samples.token_rows[row + 1]]
        starts, lengths = samples.number_start[among], samples.number_length[among]
        if "." not in codec.literals(tokens.astype(np.uint32), starts, lengths)[number]:
            return Numerals.of_literals(unwritten(values))
    return Numerals(values)


def swept_row(
    samples: EncodedSplit, row: int, number: int, codec: Codec, numerals: Numerals
) -> EncodedSplit:
    """Return copies of a row, one for each numeral.

    In each copy, the numeral replaces the number at the index ``number``. The rest of the row is
    unchanged. Raises UsageError if the scheme cannot represent a value.
    """
    values, answer = numerals.values, int(samples.answer_start[row])
    among = slice(int(samples.number_rows[row]), int(samples.number_rows[row + 1]))
    at, length = int(samples.number_start[among][number]), int(samples.number_length[among][number])
    in_answer = 0 <= answer <= at
    encoded = codec.encode_numbers(numerals.of_texts(np.full(len(values), in_answer)))
    lost = np.isin(encoded.outcomes, LOSSES)
    if lost.any():
        raise UsageError(
            f"scheme {spec_of(codec.scheme)!r} cannot represent {values[np.argmax(lost)]:g}. "
            f"Choose --from and --to within {_writable(codec, in_answer)}"
        )
    tokens = samples.tokens[samples.token_rows[row] : samples.token_rows[row + 1]]
    n, count = len(values), among.stop - among.start

    def each(column: NDArray[Any]) -> NDArray[Any]:
        """[n, numbers of the row]"""
        return np.tile(column[among], (n, 1))

    new = (encoded.tokens + np.uint32(codec.number_first)).astype(tokens.dtype)
    ends = np.cumsum(encoded.lengths)
    parts = []
    for first, end in zip((ends - encoded.lengths).tolist(), ends.tolist(), strict=True):
        parts += [tokens[:at], new[first:end], tokens[at + length :]]
    longer = encoded.lengths.astype(np.int32) - np.int32(length)
    starts, lengths = each(samples.number_start), each(samples.number_length)
    starts = starts + np.where(starts > at, longer[:, None], np.int32(0))
    lengths[:, number] = encoded.lengths
    numbers = each(samples.numbers)
    numbers[:, number] = values
    channel = None
    if samples.channel is not None and encoded.channel is not None:
        channel = each(samples.channel)
        channel[:, number] = encoded.channel
    in_row = samples.target_row == row
    targets = samples.targets[in_row] - among.start
    which = np.tile(np.flatnonzero(in_row), n)
    return EncodedSplit(
        ids=pa.array(list(map(str, range(n))), pa.string()),
        tokens=np.concatenate(parts),
        token_rows=_offsets(len(tokens) + longer),
        number_rows=np.arange(n + 1, dtype=np.int64) * count,
        numbers=numbers.astype(np.float64).ravel(),
        number_start=starts.astype(np.int32).ravel(),
        number_length=lengths.astype(np.int32).ravel(),
        channel=None if channel is None else channel.ravel(),
        targets=(np.arange(n)[:, None] * count + targets).ravel(),
        target_row=np.repeat(np.arange(n), len(targets)),
        target_name=samples.target_name.take(pa.array(which)),
        target_literal=samples.target_literal.take(pa.array(which)),
        answer_start=(answer + longer if answer > at else np.full(n, answer)).astype(np.int32),
        labels=pa.nulls(n, pa.string()),
        groups={},
    )


def _writable(codec: Codec, in_answer: bool) -> str:
    """Return the range of a scheme in raw units, for numbers in answers or outside of them."""
    bounds, undo = codec.scheme.bounds, codec.normalizer.at(in_answer).inverse
    if codec.scheme.unit_interval:
        low, high = undo(np.array([0.0, 1.0])).tolist()
        return f"{low:g} to {high:g}"
    low, high = undo(np.array([-bounds.high, bounds.high])).tolist()
    smallest = "" if not bounds.low else f", with magnitudes of at least {bounds.low:g}"
    if smallest and not codec.normalizer.normalizer.identity:
        smallest += " after normalization"
    return f"{low:g} to {high:g}{smallest}"


def _offsets(counts: NDArray[np.int32]) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
