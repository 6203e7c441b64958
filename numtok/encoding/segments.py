"""segments: texts split at their numbers, and at positions where a token must begin."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from numtok.arrays import Int32s, UInt8s
from numtok.encoding.texts import Texts, offsets
from numtok.numerals.column import Literals
from numtok.numerals.find import Spans

CHUNK = 8 << 20  # bytes of text encoded at a time, about


class Segments(NamedTuple):
    """``m`` segments of texts, with ``k`` numbers in total. Segment s is
    ``data[bounds[s]:bounds[s + 1]]``."""

    data: UInt8s  # [bytes] of all texts
    bounds: Int32s  # [m + 1]
    limits: Int32s  # [m] end of the text that the segment belongs to
    counts: Int32s  # [m] numbers in each segment
    starts: Int32s  # [k] offsets in the data
    ends: Int32s  # [k]
    literals: Literals  # [k] the numbers, as schemes see them

    @property
    def columns(self) -> tuple[UInt8s, Int32s, Int32s, Int32s, Int32s, Int32s]:
        """Arrays without the literals, as kernels take them."""
        return self[:-1]

    def room(self) -> int:
        """Return an upper bound, in bytes, for the escaped text between the numbers. An escape adds
        one byte to a special token such as ``[NUM]``."""
        size = int(self.bounds[-1] - self.bounds[0])
        return size + size // 4 + 1

    def pieces(self) -> Texts:
        """Return the escaped text between the numbers. A segment with k numbers has k + 1
        pieces."""
        from numtok.encoding import interleave

        pieces = np.empty(self.room(), np.uint8)
        bounds = np.empty(len(self.starts) + len(self.counts) + 1, np.int32)
        used = interleave.cut(*self.columns, pieces, bounds)
        return Texts(pieces[:used], bounds)


def marked(pieces: Texts, counts: Int32s) -> Texts:
    """Join the pieces of each segment with ``[NUM]``. ``counts`` is the number of numbers in each
    segment, int32[m]."""
    from numtok.encoding import interleave

    size = len(pieces.data) + len(interleave.NUMBER_BYTES) * int(counts.sum())
    texts = Texts(np.empty(size, np.uint8), np.empty(len(counts) + 1, np.int32))
    interleave.fill(*pieces, counts, *texts)
    return texts


def segments_of(texts: Texts, spans: Spans, marks: Int32s | None) -> Segments:
    """Split texts into segments. A segment begins at the start of each text and at each mark.

    Long texts are also split before a number every few MiB, to limit memory use during encoding.

    marks
        int32[n], byte offset in each text at which a token must begin; -1 for no mark.
    """
    cuts = [texts.rows]
    if marks is not None:
        cuts.append(marks[marks >= 0])
    if len(spans.starts) and np.diff(texts.rows).max(initial=0) > CHUNK:
        nearest = np.searchsorted(spans.starts, np.arange(0, texts.rows[-1], CHUNK))
        cuts.append(spans.starts[np.minimum(nearest, len(spans.starts) - 1)])
    # Not np.unique, which imports numpy.ma: a tenth of the time of a small encode.
    ordered = np.sort(np.concatenate(cuts))
    bounds = ordered[np.append(True, ordered[1:] != ordered[:-1])].astype(np.int32)
    limits = texts.rows[np.searchsorted(texts.rows, bounds[:-1], side="right")]
    counts = np.diff(np.searchsorted(spans.starts, bounds)).astype(np.int32)
    return Segments(
        data=texts.data,
        bounds=bounds,
        limits=limits,
        counts=counts,
        starts=spans.starts,
        ends=spans.ends,
        literals=spans.literals,
    )


def chunks_of(segments: Segments) -> Iterator[Segments]:
    """Yield groups of consecutive segments, with a few MiB of text each."""
    numbers = offsets(segments.counts)
    bounds, count = segments.bounds, len(segments.counts)
    begin = 0
    while True:
        enough = np.searchsorted(bounds, int(bounds[begin]) + CHUNK, side="right") - 1
        end = min(max(int(enough), begin + 1), count)
        among = slice(numbers[begin], numbers[end])
        yield segments._replace(
            bounds=bounds[begin : end + 1],
            limits=segments.limits[begin:end],
            counts=segments.counts[begin:end],
            starts=segments.starts[among],
            ends=segments.ends[among],
            literals=segments.literals.take(among),
        )
        begin = end
        if begin >= count:
            return


def cut(texts: Texts, spans: Spans) -> Texts:
    """Return the escaped text between the numbers. A text with k numbers has k + 1 pieces."""
    return Segments(
        data=texts.data,
        bounds=texts.rows,
        limits=texts.rows[1:],
        counts=spans.counts,
        starts=spans.starts,
        ends=spans.ends,
        literals=spans.literals,
    ).pieces()
