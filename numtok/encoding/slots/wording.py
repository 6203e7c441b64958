"""Places in texts that are neither JSON-like nor tables, compiled: by the words around a number.

Three levels, each coarser than the one before; ``slots`` says when the next is
taken:

- a *place* in a template: the words of the row up to its last number are the
  template, and a number stands so many words after its beginning;
- an *anchor*: the last word on the line before the number;
- the text as a whole.

At a place and at an anchor, numbers are counted from the last word or, where
none is before them, from the beginning of the line: ``1.5 2.5 3.5`` has the
first, second and third place, whatever signs and brackets are between them.

Digits within a word make no other word: ``T13`` and ``T14`` are ``T#``.
"""

import numpy as np
from numba import int32, int64, types, uint8, uint64, void

from numtok.encoding.slots.places import (
    ANCHOR,
    ANCHORS,
    COARSER,
    FIELDS,
    LEVEL,
    NTH,
    PLACE,
    PLACES,
    TEMPLATE,
    TEMPLATES,
    TEXT,
    UNSETTLED,
    USED,
    child,
)
from numtok.kernels import HASH_START, byte_at, inlined, kernel, reads, writes

BY_TEMPLATE, BY_ANCHOR, AS_ONE = range(3)  # the levels
MOST_TEMPLATES = 8  # more are no few templates, but rows that differ
MOST_PLACES = 64  # in all templates together
MOST_ANCHORS = 48  # anchors with the numbers after each
LAST_NTH = 16  # numbers after the same word that have places of their own
NTHS = 32  # codes of places are those of words times this, and the number after the word
_EXAMPLE = 200  # bytes of the first row of a template, kept as an example

_NEWLINE, _DIGITS = ord("\n"), ord("#")  # what stands for a run of digits in a word
_IN_WORD = np.zeros(256, np.uint8)  # of each byte in a word, what it is in it
_IN_WORD[ord("A") : ord("Z") + 1] = range(ord("A"), ord("Z") + 1)
_IN_WORD[ord("a") : ord("z") + 1] = range(ord("a"), ord("z") + 1)
_IN_WORD[0x80:] = range(0x80, 256)
_IN_WORD[ord("_")] = ord("_")
_IN_WORD[list(b"0123456789")] = _DIGITS
_MULTIPLIER, _SEED = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x243F6A8885A308D3)


@inlined
def _word(data, i, stop):  # type: ignore[no-untyped-def]
    """The hash of the word at ``i``, and where it ends."""
    code = HASH_START
    before = np.uint8(0)
    while i < stop:
        c = _IN_WORD[byte_at(data, i)]
        if c == 0:
            break
        if c != _DIGITS or before != _DIGITS:
            code = (code ^ np.uint64(c)) * _MULTIPLIER
        before = c
        i += 1
    return code, i


@inlined
def _measure(  # type: ignore[no-untyped-def]
    data, begin, starts, ends, first, last, words, nths, anchors, at, sizes
):
    """Where each number of a row stands among the words; returns the code of the template."""
    template = _SEED
    count = 0  # words so far
    nth = 0  # numbers since the last word or the beginning of the line
    anchor = np.uint64(0)
    anchor_at = np.int64(-1)
    anchor_size = np.int64(0)
    i = begin
    for n in range(first, last):
        stop = np.int64(starts[n])
        while i < stop:
            c = byte_at(data, i)
            if _IN_WORD[c] != 0 and _IN_WORD[c] != _DIGITS:
                anchor_at = i
                anchor, i = _word(data, i, stop)
                anchor_size = i - anchor_at
                template = (template ^ anchor) * _MULTIPLIER
                count += 1
                nth = 0
            else:
                if c == _NEWLINE:
                    anchor = np.uint64(0)
                    anchor_at = np.int64(-1)
                    anchor_size = np.int64(0)
                    nth = 0
                i += 1
        nth += nth <= LAST_NTH
        words[n] = count
        nths[n] = nth
        anchors[n] = anchor
        at[n] = anchor_at
        sizes[n] = anchor_size
        i = np.int64(ends[n])
    return template


@inlined
def _anchored(nodes, index, facts, code, nth, at, size):  # type: ignore[no-untyped-def]
    """The node of the ``nth`` number after an anchor."""
    before = facts[USED]
    anchor = child(nodes, index, facts, TEXT, ANCHOR, code, at, size)
    found = child(nodes, index, facts, anchor, NTH, np.uint64(nth), -1, 0)
    if facts[USED] > before:
        facts[ANCHORS] += 1
    return found


@kernel(
    void(
        reads(uint8), reads(int32), reads(int32), reads(int32), reads(int32),
        reads(types.boolean), writes(int64), writes(int32), writes(uint64), writes(int64),
        writes(int32), writes(int64), writes(int32), writes(int64), writes(int32),
    )
)  # fmt: skip
def place(  # type: ignore[no-untyped-def]
    data, rows, counts, starts, ends, placed, words, nths, anchors, at, sizes,
    nodes, index, facts, slots,
):  # fmt: skip
    """Find the place of each number of the rows that are not ``placed``."""
    first = np.int64(0)
    for row in range(len(counts)):
        last = first + np.int64(counts[row])
        if last > first and not placed[row]:
            if facts[LEVEL] == AS_ONE:
                for n in range(first, last):
                    slots[n] = TEXT
            else:
                begin = np.int64(rows[row])
                code = _measure(
                    data, begin, starts, ends, first, last, words, nths, anchors, at, sizes
                )
                template = np.int64(-1)
                if facts[LEVEL] == BY_TEMPLATE:
                    before = facts[USED]
                    size = min(np.int64(rows[row + 1]) - begin, _EXAMPLE)
                    template = child(nodes, index, facts, TEXT, TEMPLATE, code, begin, size)
                    facts[TEMPLATES] += facts[USED] > before
                for n in range(first, last):
                    if facts[LEVEL] == BY_TEMPLATE:
                        before = facts[USED]
                        # Numbers with and without a word before them on their line have
                        # other anchors, so they are other places.
                        there = np.uint64((2 * words[n] + (anchors[n] == 0)) * NTHS + nths[n])
                        slot = child(nodes, index, facts, template, PLACE, there, at[n], sizes[n])
                        slots[n] = slot
                        if facts[USED] > before:
                            facts[PLACES] += 1
                            nodes[slot * FIELDS + COARSER] = _anchored(
                                nodes, index, facts, anchors[n], nths[n], at[n], sizes[n]
                            )
                            if facts[PLACES] > MOST_PLACES or facts[TEMPLATES] > MOST_TEMPLATES:
                                facts[LEVEL] = BY_ANCHOR
                                facts[UNSETTLED] = 1
                    elif facts[LEVEL] == BY_ANCHOR:
                        slots[n] = _anchored(
                            nodes, index, facts, anchors[n], nths[n], at[n], sizes[n]
                        )
                    else:
                        slots[n] = TEXT
                    if facts[LEVEL] == BY_ANCHOR and facts[ANCHORS] > MOST_ANCHORS:
                        facts[LEVEL] = AS_ONE
                        facts[UNSETTLED] = 1
        first = last
