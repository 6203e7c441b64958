"""Rows of a part as they are read, those that cannot be used among them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.data.reading.file_part import FilePart, first_number, place_of
from numtok.data.reading.rows import RowColumns
from numtok.errors import DataError


@dataclass(frozen=True)
class ReadingOptions:
    """How inputs are read."""

    text_field: str = "text"
    max_line: int = 256 << 20  # bytes
    checked: bool = True  # compare the bytes with the plan's; a pass that another follows need not


class RejectedRow(NamedTuple):
    """A row that cannot be used, and why; ``row`` counts the lines of its part."""

    part: FilePart
    row: int
    reason: str
    content: bytes | None  # None where it was too long to keep

    def error(self) -> DataError:
        """The error that ends a run with ``--on-error fail``."""
        return DataError(
            f"{place_of(self.part, self.row)}: {self.reason} "
            "(--on-error skip leaves such rows out and keeps them aside)"
        )

    @property
    def number(self) -> int:
        """The line of the file, from 1; of Parquet the row, from 0."""
        return self.row + first_number(self.part)


@dataclass(kw_only=True)
class RowBatch:
    """Rows of one part."""

    part: FilePart
    numbers: NDArray[np.int64]  # [n] lines of the part before each: all of a packed file
    rows: RowColumns
    contents: Callable[[int], bytes]  # the row as it was read, for rejecting it
    rejected: list[RejectedRow] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, keep: NDArray[np.int64]) -> "RowBatch":
        """The rows at some indices (int64[k]), which rise."""
        contents = self.contents
        return RowBatch(
            part=self.part,
            numbers=self.numbers[keep],
            rows=self.rows.take(keep),
            contents=lambda index: contents(int(keep[index])),
            rejected=self.rejected,
        )

    def release(self) -> None:
        """Give the memory of the texts back; those who iterate still hold the batch itself."""
        self.rows = self.rows.without_texts()
        self.contents = lambda index: b""

    def reject(self, index: int, reason: str) -> RejectedRow:
        """The row at an index as one that cannot be used."""
        return RejectedRow(self.part, int(self.numbers[index]), reason, self.contents(index))
