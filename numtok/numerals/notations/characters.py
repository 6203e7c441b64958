"""Rewrites single characters: digits of other scripts and dashes, and exchanges points and
commas."""

import numpy as np

from numtok.arrays import Int32s, UInt8s
from numtok.kernel_types import boolean, int32, int64, reads, uint8, void, writes
from numtok.kernels import byte_at, copy_bytes, kernel
from numtok.numerals._eight import next_high
from numtok.numerals._identifiers import OTHER_ZEROS, other_digit_at
from numtok.numerals.notations._text import code, code_at, codes, index_in
from numtok.numerals.notations.rewritten import Rewritten
from numtok.numerals.policy import NumeralPolicy

#: Characters that ``unicode`` reads as ASCII ones, besides the digits of other scripts.
ASCII_FORMS = {
    **{"．": ".", "，": ",", "－": "-", "＋": "+", "％": "%", "／": "/"},
    **{"٫": ".", "٬": ",", "٪": "%", "⁄": "/"},
}
#: Hyphens and dashes that ``signs=dash`` reads as a minus.
DASHES = "\u2011\u2013"

_FORM_CODES = codes(ASCII_FORMS)
_FORMS = np.array([ord(ASCII_FORMS[word]) for word in sorted(ASCII_FORMS, key=code)], np.uint8)
_DASH_CODES = codes(DASHES)
_MINUS_SIGN = np.array([*"\u2212".encode()], np.uint8)  # as long as the dashes
_ZERO, _POINT, _COMMA = np.uint8(ord("0")), np.uint8(ord(".")), np.uint8(ord(","))


@kernel(
    int64(
        reads(uint8), reads(int32), reads(uint8), boolean, boolean, writes(uint8), writes(int32),
        writes(int32), writes(int32), writes(int32), writes(int32), writes(int64),
    )
)  # fmt: skip
def _rewrite(data, rows, forms, unicode, dash, out, out_rows, outs, out_ends, ins, in_ends, size):  # type: ignore[no-untyped-def]
    """Rewrite characters; see :meth:`Rewritten.by`."""
    o = np.int64(0)
    edits = 0
    for row in range(len(rows) - 1):
        i, end = np.int64(rows[row]), np.int64(rows[row + 1])
        out_rows[row] = o
        while i < end:
            high = next_high(data, i, end)
            copy_bytes(out, o, data, i, high - i)
            o += high - i
            i = high
            if i == end:
                break
            own, width = code_at(data, i, end)
            width = max(width, np.int64(1))
            form = np.int64(-1)
            if unicode:
                at = index_in(_FORM_CODES, own)
                if at >= 0:
                    form = np.int64(forms[at])
                elif other_digit_at(data, i, end):
                    point = np.int64(byte_at(data, i)) & (0x7F >> width)
                    for k in range(1, width):
                        point = (point << 6) | (np.int64(byte_at(data, i + k)) & 0x3F)
                    zero = OTHER_ZEROS[np.searchsorted(OTHER_ZEROS, point, side="right") - 1]
                    form = np.int64(_ZERO) + point - zero
            if form >= 0:
                out[o] = form
                outs[edits], out_ends[edits] = o, o + 1
                ins[edits], in_ends[edits] = i, i + width
                edits += 1
                o += 1
            else:
                is_dash = dash and index_in(_DASH_CODES, own) >= 0
                for k in range(width):
                    out[o + k] = _MINUS_SIGN[k] if is_dash else byte_at(data, i + k)
                o += width
            i += width
    out_rows[len(rows) - 1] = o
    size[0] = o
    return edits


@kernel(void(reads(uint8), writes(uint8)))
def _exchange(data, out):  # type: ignore[no-untyped-def]
    for i in range(len(data)):
        c = data[i]
        out[i] = _COMMA if c == _POINT else _POINT if c == _COMMA else c


def exchanged(data: UInt8s) -> UInt8s:
    """Return a copy of texts in which points and commas have exchanged their places."""
    out = np.empty_like(data)
    _exchange(data, out)
    return out


def rewrite_characters(data: UInt8s, rows: Int32s, policy: NumeralPolicy) -> Rewritten:
    """Rewrite the characters of texts that a policy reads as other ones. With decimal commas, the
    texts must be :func:`exchanged`. Raises DataError if the result has more than 2 GiB."""
    forms = exchanged(_FORMS) if policy.decimal == "comma" else _FORMS
    options = (forms, policy.unicode, "dash" in policy.signs)
    return Rewritten.by(_rewrite, data, rows, growth=1, options=options)
