"""Rewritten texts, and the way from spans in them to spans in the original."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numtok.arrays import Int32s, UInt8s
from numtok.errors import DataError
from numtok.kernel_types import int32, int64, reads, void, writes
from numtok.kernels import kernel


@kernel(
    void(
        reads(int32), int64, reads(int32), reads(int32), reads(int32), reads(int32), reads(int32),
        int64, writes(int32),
    )
)  # fmt: skip
def _move(offsets, back, edges, out_starts, out_ends, starts, ends, shift, moved):  # type: ignore[no-untyped-def]
    """Find the offsets in the original of ascending ``offsets``. If the byte at an offset (``back``
    0) or before it (1) is part of an edit, the edge of the edit takes its place."""
    edit = 0
    for k in range(len(offsets)):
        at = offsets[k] - back
        while edit < len(edges) and out_ends[edit] <= at:
            shift = ends[edit] - out_ends[edit]
            edit += 1
        is_inside = edit < len(edges) and out_starts[edit] <= at
        moved[k] = edges[edit] if is_inside else offsets[k] + shift


class Edits(NamedTuple):
    """``E`` replacements of a piece of text, in order. Offsets are in bytes."""

    out_starts: Int32s  # [E] where it was written
    out_ends: Int32s  # [E]
    starts: Int32s  # [E] what it replaces in the original
    ends: Int32s  # [E]


class Rewritten(NamedTuple):
    """``n`` rewritten texts. Text r is ``data[rows[r]:rows[r + 1]]``."""

    data: UInt8s  # [bytes]
    rows: Int32s  # [n + 1]
    edits: Edits
    first: int  # offset of the first text in the original

    @classmethod
    def by(
        cls,
        kernel: Callable[..., int],
        data: UInt8s,
        rows: Int32s,
        *,
        growth: int,
        options: Sequence[Any],
    ) -> "Rewritten":
        """Rewrite ``n`` texts with a kernel.

        kernel
            Function of the texts, the options, and arrays to be filled: the bytes, the rows, the
            edits and the number of bytes. It returns the number of edits.
        growth
            Number of bytes written per byte read, at most.
        options
            Arguments of the kernel between the texts and the arrays.

        Raises DataError if the result has more than 2 GiB.
        """
        size = int(rows[-1] - rows[0])
        # Untouched pages cost no memory.
        out, out_rows = np.empty(growth * size + 1, np.uint8), np.empty_like(rows)
        edits = [np.empty(size + 1, np.int32) for _ in Edits._fields]
        written = np.zeros(1, np.int64)
        arguments = (data, rows, *options, out, out_rows, *edits, written)
        count = kernel(*arguments)
        if written[0] > np.iinfo(np.int32).max:
            raise DataError(
                f"texts must have at most {np.iinfo(np.int32).max:,} bytes with their numbers "
                f"rewritten (got {int(written[0]):,}). Use fewer texts at a time"
            )
        kept = Edits(*(edit[:count].copy() for edit in edits))
        return cls(out[: written[0]], out_rows, kept, int(rows[0]))

    def original(self, starts: Int32s, ends: Int32s) -> tuple[Int32s, Int32s]:
        """Return the spans in the original, int32[k] each, that correspond to spans in the
        rewritten texts, in ascending order. An edit is replaced as a whole."""
        if not len(self.edits.starts):
            return starts + np.int32(self.first), ends + np.int32(self.first)
        moved = np.empty_like(starts), np.empty_like(ends)
        _move(starts, 0, self.edits.starts, *self.edits, self.first, moved[0])
        _move(ends, 1, self.edits.ends, *self.edits, self.first, moved[1])
        return moved
