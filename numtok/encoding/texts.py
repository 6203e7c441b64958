"""Columns of texts as bytes, and the numbers found in them."""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from numtok.arrays import Int32s, UInt8s
from numtok.errors import DataError
from numtok.numerals.column import Literals, Numerals
from numtok.numerals.policy import NumeralPolicy

_ESCAPED = re.compile(r"(\[\\*)\\(?=NUM|PAD|END|MASK)")


class Texts(NamedTuple):
    """``n`` texts as bytes: text r is ``data[rows[r]:rows[r + 1]]``, valid UTF-8."""

    data: UInt8s  # [bytes]
    rows: Int32s  # [n + 1]

    @classmethod
    def of(cls, texts: "pa.Array[Any] | pa.ChunkedArray[Any] | Iterable[str]") -> "Texts":
        """Texts from a list of strings, or from an Arrow column of strings of any layout.

        The bytes of an Arrow array of strings, large ones too, are not copied; other layouts
        (string views, dictionaries, chunks) are brought into that form first. What pyarrow takes
        for a column, as those of pandas and polars, goes as well.
        Raises DataError where it is no column of strings, has a null, or holds more than 2 GiB.
        """
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
                    f"the texts have {last - first} bytes together, at most "
                    f"{np.iinfo(np.int32).max} are possible; take slices of the column"
                )
            characters, rows = characters[first:last], rows - first
        return cls(characters, rows.astype(np.int32, copy=False))

    def find(self, policy: NumeralPolicy) -> "Spans":
        """Find the numbers."""
        from numtok.numerals.scan import scan  # late: decoding needs no numba

        return Spans(*scan(self.data, self.rows, policy))

    def numerals(self, spans: "Spans") -> Numerals:
        """Read the numbers that :meth:`find` found."""
        return Numerals.read(Literals(self.data, spans.starts, spans.ends))

    def strings(self) -> list[str]:
        """The texts as they were."""
        whole, bounds = self.data.tobytes(), self.rows.tolist()
        return [whole[begin:end].decode() for begin, end in pairwise(bounds)]


class Spans(NamedTuple):
    """The numbers of ``n`` texts, in order; offsets are bytes of ``Texts.data``."""

    starts: Int32s  # [numbers]
    ends: Int32s  # [numbers]
    counts: Int32s  # [n] numbers in each text


def unescape(text: str) -> str:
    r"""Undo the escape of literal special tokens, for the pieces of a ``text`` column.

    >>> print(unescape(r"[\NUM] and [\\PAD]"))
    [NUM] and [\PAD]
    """
    return _ESCAPED.sub(r"\1", text)


def offsets(counts: Int32s) -> Int32s:
    """int32[n + 1]: where each of ``n`` runs begins among all; the last is their sum.

    Raises DataError where int32 cannot hold the sum.
    """
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    if bounds[-1] > np.iinfo(np.int32).max:
        raise DataError(
            f"a row, or a few rows together, would have {bounds[-1]} tokens or bytes; "
            f"at most {np.iinfo(np.int32).max} are possible: split the longest row"
        )
    return bounds.astype(np.int32)


def _string_column(texts: "pa.Array[Any] | pa.ChunkedArray[Any] | Iterable[str]") -> Any:
    """The texts as one Arrow array, string or large_string, without nulls."""
    column: Any = texts
    name = getattr(texts, "name", None)  # of a data frame's column
    of = f"column {name!r}: " if isinstance(name, str) and name else ""
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        column = _arrow_column(texts, of)
    if column.null_count == 0 and pa.types.is_string(column.type) and isinstance(column, pa.Array):
        return column
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    readable = (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )
    # Of an empty list, and of one of None alone, nobody knows the type.
    if not readable and not pa.types.is_null(kind):
        raise DataError(
            f"{of}texts are a column of {column.type}, one of strings is needed; cast it, or take "
            "another column"
        )
    column = column.cast(pa.large_string())  # where chunks may be any size together
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.null_count:  # asked here, since a dictionary may hold a null itself
        row = column.is_null().index(True).as_py()
        raise DataError(
            f"{of}text {row} is null, and {column.null_count} are in all; leave such rows out, "
            'or fill them with ""'
        )
    return column


def _arrow_column(texts: Any, of: str) -> Any:
    """What is no Arrow column as one, of whatever type."""
    if isinstance(texts, str | bytes):
        raise DataError("texts are one string, a list or a column of strings is needed: [text]")
    if hasattr(texts, "columns"):
        raise DataError("texts are a data frame; take one of its columns, as in frame['text']")
    if not hasattr(texts, "dtype") and isinstance(texts, Iterable):
        texts = list(texts)  # which may come but once
    try:
        return pa.array(texts)
    except (pa.ArrowException, TypeError, ValueError) as error:
        if isinstance(texts, Iterable) and getattr(texts, "ndim", 1) == 1:
            for place, one in enumerate(texts):
                if one is not None and (wrong := _no_text(one)) is not None:
                    raise DataError(f"{of}text {place} {wrong}") from None
        why = " ".join(str(error).split())
        raise DataError(
            f"{of}texts cannot be read as a column of strings ({why}); give a list of str, or a "
            "column"
        ) from None


def _no_text(one: object) -> str | None:
    """Why something is no text, as a sentence goes on behind its name; None where it is one."""
    if not isinstance(one, str):
        return f"is no string, but of type {type(one).__name__}; make it one, or leave it out"
    try:
        one.encode()
    except UnicodeEncodeError:
        return f"is not UTF-8 ({one[:40]!r}); decode its bytes as what they are"
    return None
