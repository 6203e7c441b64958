"""Batches of rows read from a file part, with the rejected rows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.data.reading.file_part import FilePart, first_number, location_of
from numtok.data.reading.rows import RowColumns
from numtok.errors import DataError
from numtok.row import TEXT


@dataclass(frozen=True)
class ReadingOptions:
    """Options for reading inputs: the text field, the maximum line length, and verification."""

    text_field: str = TEXT
    max_line: int = 256 << 20  # bytes
    checked: bool = True  # compare the bytes with the plan; needed only in the last pass over them


class RejectedRow(NamedTuple):
    """A row that cannot be used, and the reason. ``row`` is the index of its line in the part."""

    part: FilePart
    row: int
    reason: str
    content: bytes | None  # None if the row was too long to keep

    def error(self) -> DataError:
        """Return the error that ``--on-error fail`` raises for this row."""
        location = location_of(self.part, self.row)
        return DataError(f"{location}: {self.reason}. Skip bad rows: --on-error skip")

    @property
    def number(self) -> int:
        """Line number in the file, counted from 1; for Parquet, the row number, counted from 0."""
        return self.row + first_number(self.part)


@dataclass(kw_only=True)
class RowBatch:
    """Consecutive rows of one part of a file, as columns, and the rejected rows among them."""

    part: FilePart
    numbers: NDArray[np.int64]  # [n] lines of the part before each row
    rows: RowColumns
    contents: Callable[[int], bytes]  # returns the input bytes of a row, in case it is rejected
    rejected: list[RejectedRow] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, keep: NDArray[np.int64]) -> "RowBatch":
        """Return a batch with only the rows at increasing indices (int64[k]).

        The list of rejected rows is not changed.
        """
        contents = self.contents
        return RowBatch(
            part=self.part,
            numbers=self.numbers[keep],
            rows=self.rows.take(keep),
            contents=lambda index: contents(int(keep[index])),
            rejected=self.rejected,
        )

    def release(self) -> None:
        """Drop the texts to free memory, even if an iterator still references the batch."""
        self.rows = self.rows.without_texts()
        self.contents = lambda index: b""

    def reject(self, index: int, reason: str) -> RejectedRow:
        """Return the row at an index as a :class:`RejectedRow`."""
        return RejectedRow(self.part, int(self.numbers[index]), reason, self.contents(index))
