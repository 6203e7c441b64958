"""row_numbers: the numbers in the texts of rows, without those in spans that a row excludes."""

import numpy as np

from numtok.arrays import Ints
from numtok.data.reading.rows import NotNumbers, RowColumns, outside
from numtok.data.reading.values import byte_places
from numtok.encoding.texts import Texts
from numtok.numerals.find import Spans
from numtok.numerals.policy import NumeralPolicy


def numbers_in(rows: RowColumns, policy: NumeralPolicy) -> tuple[Texts, Spans]:
    """Return the texts of rows, and the numbers in them that overlap no ``not_numbers`` span."""
    texts = Texts.of(rows.texts)
    spans = texts.find(policy)
    if rows.not_numbers is None:
        return texts, spans
    keep = np.ones(len(spans.starts), np.bool_)
    for start, end in _bytes_of(rows.not_numbers, texts).tolist():
        if 0 <= start < end:  # others are reported by span_problems
            first = np.searchsorted(spans.ends, start, side="right")
            keep[first : np.searchsorted(spans.starts, end)] = False
    return texts, spans.take(keep)


def span_problems(rows: RowColumns, texts: Texts) -> dict[int, str]:
    """Return a message for each row with a ``not_numbers`` span that is not a part of its text."""
    excluded = rows.not_numbers
    if excluded is None:
        return {}
    problems: dict[int, str] = {}
    spans = _bytes_of(excluded, texts)
    for index in np.flatnonzero((spans[:, 0] < 0) | (spans[:, 1] < spans[:, 0])).tolist():
        row = int(excluded.rows[index])
        what = f"not_numbers {[int(excluded.starts[index]), int(excluded.ends[index])]}"
        text = texts.data[texts.rows[row] : texts.rows[row + 1]].tobytes().decode()
        problems.setdefault(row, outside(what, text))
    return problems


def _bytes_of(excluded: NotNumbers, texts: Texts) -> Ints:
    """Return the byte offsets of k spans, int64[k, 2]; -1 outside of a text."""
    places = (byte_places(*texts, excluded.rows, each) for each in excluded[1:])
    return np.stack([*places], axis=1).astype(np.int64)
