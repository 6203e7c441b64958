"""tables: compiled function that assigns numbers in lines of a table to columns.

A row is treated as lines of a table (``Berlin,12.35,-99.1``) if one of ``, ; tab |`` is next to its
numbers, and if it has more cells that are a single number than cells that mix words and numbers
(``12 Main Street``). A date counts as neither kind of cell. Blanks around a number are ignored,
except after a comma: ``1, 2`` is a list in a sentence. Separators within double quotes are treated
as text.
"""

import numpy as np

from numtok.encoding.fields.places import COLUMN, TEXT, TREE, child
from numtok.encoding.row_keys import SPANS, TEXTS
from numtok.kernel_types import boolean, int32, int64, writes
from numtok.kernels import byte_at, inlined, kernel

MOST_COLUMNS = 32  # further columns share a place
LAST_NTH = 16  # numbers in one cell with separate places
NTHS = 32  # a code is column * NTHS + index of the number in the cell

_SEPARATORS = b",|;\t"  # if two of these are next to numbers, the later one separates cells
_RANK = np.zeros(256, np.int64)
_RANK[list(_SEPARATORS)] = range(1, len(_SEPARATORS) + 1)
_LETTER, _BLANK = np.zeros(256, np.bool_), np.zeros(256, np.bool_)
_LETTER[ord("A") : ord("Z") + 1] = True
_LETTER[ord("a") : ord("z") + 1] = True
_LETTER[0x80:] = True
_BLANK[list(b" \r")] = True
_AROUND = _BLANK.copy()  # characters allowed between a number and a separator
_AROUND[ord('"')] = True
_COMMA, _QUOTE, _NEWLINE, _SPACE = ord(","), ord('"'), ord("\n"), ord(" ")


@inlined
def _separator(data, begin, end, spans, first, last):  # type: ignore[no-untyped-def]
    """Return the rank of the separator next to the numbers of a row, or 0 if none is."""
    rank = 0
    for n in range(first, last):
        i = np.int64(spans.starts[n]) - 1
        while i >= begin and _AROUND[byte_at(data, i)]:
            i -= 1
        if i >= begin:
            rank = max(rank, _RANK[byte_at(data, i)])
        i = np.int64(spans.ends[n])
        while i < end and _AROUND[byte_at(data, i)]:
            i += 1
        if i < end:
            rank = max(rank, _RANK[byte_at(data, i)])
    return rank


@inlined
def _cells(data, begin, end, spans, first, last, rank, codes):  # type: ignore[no-untyped-def]
    """Return whether a row consists of lines of a table. If so, ``codes`` receives the place of
    each number."""
    alone = 0  # cells that are one number
    wordy = 0  # cells with numbers, letters and blanks
    cell = nth = text_bytes = 0  # cell in this line; numbers and other bytes in this cell
    letters = blanks = quoted = False
    n = first
    i = begin
    while i <= end:
        if n < last and i == spans.starts[n]:
            nth += nth <= LAST_NTH
            codes[n] = min(cell, MOST_COLUMNS) * NTHS + nth
            i = np.int64(spans.ends[n])
            n += 1
            continue
        c = byte_at(data, i) if i < end else np.uint8(_NEWLINE)
        if c == _NEWLINE or (_RANK[c] == rank and not quoted):
            if nth == 1 and text_bytes == 0:
                alone += 1
            elif nth > 0 and letters and blanks:
                wordy += 1
            if c == _COMMA and i + 1 < end and byte_at(data, i + 1) == _SPACE:
                return False
            if c == _NEWLINE and n == last:
                break
            cell = 0 if c == _NEWLINE else cell + 1
            nth = text_bytes = 0
            letters = blanks = False
            quoted = quoted and c != _NEWLINE
        elif c == _QUOTE:
            quoted = not quoted
        elif _BLANK[c]:
            blanks = True
        else:
            text_bytes += 1
            letters = letters or _LETTER[c]
        i += 1
    return alone > wordy


@kernel(int64(TEXTS, SPANS, writes(boolean), writes(int64), TREE, writes(int32)))
def columns(texts, spans, placed, codes, tree, fields):  # type: ignore[no-untyped-def]
    """Assign each number to its column, in rows that consist of lines of a table and are not yet
    ``placed``.

    Marks these rows as placed, and returns the number of such rows. ``fields`` receives the node of
    each number. ``codes`` is working memory.
    """
    first = np.int64(0)
    rows_found = 0
    data = texts.data
    for row in range(len(spans.counts)):
        last = first + np.int64(spans.counts[row])
        if last > first and not placed[row]:
            begin, end = np.int64(texts.rows[row]), np.int64(texts.rows[row + 1])
            rank = _separator(data, begin, end, spans, first, last)
            if rank > 0 and _cells(data, begin, end, spans, first, last, rank, codes):
                placed[row] = True
                rows_found += 1
                for n in range(first, last):
                    code = np.uint64(rank * (MOST_COLUMNS + 1) * NTHS + codes[n])
                    fields[n] = child(tree, TEXT, COLUMN, code, -1, 0)
        first = last
    return rows_found
