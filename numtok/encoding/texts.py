"""texts: columns of texts as UTF-8 bytes, and the numbers found in them."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numtok.arrays import Int32s, UInt8s
from numtok.errors import DataError
from numtok.numerals.find import Spans, find
from numtok.numerals.policy import NumeralPolicy

if TYPE_CHECKING:
    import pyarrow as pa

_ESCAPED = re.compile(r"(\[\\*)\\(?=NUM|PAD|END|MASK)")


class Texts(NamedTuple):
    """``n`` texts as UTF-8 bytes. Text r is ``data[rows[r]:rows[r + 1]]``."""

    data: UInt8s  # [bytes]
    rows: Int32s  # [n + 1]

    @classmethod
    def of(cls, texts: "pa.Array[Any] | pa.ChunkedArray[Any] | Iterable[str]") -> "Texts":
        """Create texts from a list or a column of strings.

        Accepts Arrow arrays of any string layout, and other columns that pyarrow can convert, such
        as pandas and polars columns. The bytes of Arrow arrays of (large) strings are not copied;
        other layouts (string views, dictionaries, chunks) are converted first.

        Raises DataError if the input is anything else, contains a null, or has more than 2 GiB of
        text.
        """
        import pyarrow as pa  # schemes are described without it

        column = _string_column(texts)
        if not len(column):
            return cls(np.empty(0, np.uint8), np.zeros(1, np.int32))
        _, offsets, data = column.buffers()
        large = pa.types.is_large_string(column.type)
        rows = np.frombuffer(offsets, np.int64 if large else np.int32)
        rows = rows[column.offset : column.offset + len(column) + 1]
        characters = np.frombuffer(data or b"", np.uint8)
        if large:
            first, last = int(rows[0]), int(rows[-1])
            if last - first > np.iinfo(np.int32).max:
                raise DataError(
                    f"texts must have at most {np.iinfo(np.int32).max:,} bytes in total (got "
                    f"{last - first:,}). Use slices of the column"
                )
            characters, rows = characters[first:last], rows - first
        return cls(characters, rows.astype(np.int32, copy=False))

    def find(self, policy: NumeralPolicy) -> Spans:
        """Return the numbers in the texts, according to a numeral policy."""
        return find(self.data, self.rows, policy)

    def strings(self) -> list[str]:
        """Return the texts as Python strings."""
        whole, bounds = self.data.tobytes(), self.rows.tolist()
        return [whole[begin:end].decode() for begin, end in pairwise(bounds)]


def joined(parts: Sequence[Texts]) -> Texts:
    """Return the texts of several columns as one."""
    sizes = [np.diff(part.rows) for part in parts]
    data = [part.data[part.rows[0] : part.rows[-1]] for part in parts]
    return Texts(np.concatenate(data), offsets(np.concatenate(sizes)))


def unescape(text: str) -> str:
    r"""Return a piece of a ``text`` column with the escapes of literal special tokens removed (see
    :mod:`numtok.encoding.codec`).

    >>> print(unescape(r"[\NUM] and [\\PAD]"))
    [NUM] and [\PAD]
    """
    return _ESCAPED.sub(r"\1", text)


def offsets(counts: Int32s) -> Int32s:
    """Return the start of each of ``n`` consecutive runs, followed by the total length,
    int32[n + 1]. ``counts`` contains the length of each run.

    Raises DataError if the total does not fit into int32.
    """
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    if bounds[-1] > np.iinfo(np.int32).max:
        raise DataError(
            f"a row, or a few rows together, must have at most {np.iinfo(np.int32).max:,} tokens "
            f"or bytes (got {bounds[-1]:,}). Split the longest row"
        )
    return bounds.astype(np.int32)


def _string_column(texts: "pa.Array[Any] | pa.ChunkedArray[Any] | Iterable[str]") -> Any:
    """Convert texts to one Arrow array, string or large_string, without nulls."""
    import pyarrow as pa

    column: Any = texts
    name = getattr(texts, "name", None)  # columns of data frames have one
    of = f"column {name!r}: " if isinstance(name, str) and name else ""
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        column = _arrow_column(texts, of)
    if column.null_count == 0 and pa.types.is_string(column.type) and isinstance(column, pa.Array):
        return column
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    readable = (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )
    # Empty lists, and lists of only None, have the type null.
    if not readable and not pa.types.is_null(kind):
        raise DataError(
            f"{of}texts must be a column of strings (got {column.type}). Cast it, or use another "
            "column"
        )
    column = column.cast(pa.large_string())  # chunks may have any total size
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.null_count:  # checked here, since the values of a dictionary may contain a null
        row = column.is_null().index(True).as_py()
        raise DataError(
            f"{of}texts must not be null (got {column.null_count}; the first is text {row}). "
            'Drop these rows, or fill them with ""'
        )
    return column


def _arrow_column(texts: Any, of: str) -> Any:
    """Convert texts to an Arrow array of any type."""
    import pyarrow as pa

    if isinstance(texts, str | bytes):
        raise DataError("texts must be a list or a column of strings (got one string). Use [text]")
    if hasattr(texts, "columns"):
        raise DataError(
            "texts must be a column (got a data frame). Use one of its columns, as in frame['text']"
        )
    if not hasattr(texts, "dtype") and isinstance(texts, Iterable):
        texts = list(texts)  # may be an iterator
    try:
        return pa.array(texts)
    except (pa.ArrowException, TypeError, ValueError) as error:
        if isinstance(texts, Iterable) and getattr(texts, "ndim", 1) == 1:
            for index, text in enumerate(texts):
                if text is not None and (problem := _text_problem(text)) is not None:
                    raise DataError(f"{of}text {index} {problem}") from None
        why = " ".join(str(error).split())
        raise DataError(
            f"{of}texts cannot be converted to a column of strings ({why}). Use a list of str, or "
            "a column"
        ) from None


def _text_problem(text: object) -> str | None:
    """Return why an object is not a valid text, as the rest of a sentence, or None if it is
    valid."""
    if not isinstance(text, str):
        return f"must be a string (got {type(text).__name__}). Convert it, or drop it"
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"is not valid UTF-8 ({text[:40]!r}). Decode its bytes with the right encoding"
    return None
