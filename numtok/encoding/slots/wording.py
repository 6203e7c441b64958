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
from numba import from_dtype, int32, types, void

from numtok.encoding.row_keys import SPANS, TEXTS
from numtok.encoding.slots.places import (
    ANCHOR,
    NTH,
    PLACE,
    TEMPLATE,
    TEXT,
    TREE,
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


#: Where a number stands: the words before it in its row, the numbers since the last word (this one
#: too), and of that word the hash, the first byte and the size; 0, -1 and 0 for none on its line.
MEASURED = np.dtype(
    [("words", "i8"), ("nth", "i8"), ("anchor", "u8"), ("at", "i8"), ("size", "i8")], align=True
)


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
    data, begin, spans, first, last, found
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
        stop = np.int64(spans.starts[n])
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
        here = found[n]
        here.words = count
        here.nth = nth
        here.anchor = anchor
        here.at = anchor_at
        here.size = anchor_size
        i = np.int64(spans.ends[n])
    return template


@inlined
def _anchored(tree, here):  # type: ignore[no-untyped-def]
    """The node of a number by its anchor and how many numbers are after that."""
    before = tree.facts[0].used
    anchor = child(tree, TEXT, ANCHOR, here.anchor, here.at, here.size)
    found = child(tree, anchor, NTH, np.uint64(here.nth), -1, 0)
    if tree.facts[0].used > before:
        tree.facts[0].anchors += 1
    return found


@kernel(void(TEXTS, SPANS, reads(types.boolean), writes(from_dtype(MEASURED)), TREE, writes(int32)))
def place(texts, spans, placed, found, tree, slots):  # type: ignore[no-untyped-def]
    """Find the place of each number of the rows that are not ``placed``."""
    facts = tree.facts[0]
    first = np.int64(0)
    for row in range(len(spans.counts)):
        last = first + np.int64(spans.counts[row])
        if last > first and not placed[row]:
            if facts.level == AS_ONE:
                for n in range(first, last):
                    slots[n] = TEXT
            else:
                begin = np.int64(texts.rows[row])
                code = _measure(texts.data, begin, spans, first, last, found)
                template = np.int64(-1)
                if facts.level == BY_TEMPLATE:
                    before = facts.used
                    size = min(np.int64(texts.rows[row + 1]) - begin, _EXAMPLE)
                    template = child(tree, TEXT, TEMPLATE, code, begin, size)
                    facts.templates += facts.used > before
                for n in range(first, last):
                    here = found[n]
                    if facts.level == BY_TEMPLATE:
                        before = facts.used
                        # Numbers with and without a word before them on their line have
                        # other anchors, so they are other places.
                        there = np.uint64((2 * here.words + (here.anchor == 0)) * NTHS + here.nth)
                        slot = child(tree, template, PLACE, there, here.at, here.size)
                        slots[n] = slot
                        if facts.used > before:
                            facts.places += 1
                            tree.nodes[slot].coarser = _anchored(tree, here)
                            if facts.places > MOST_PLACES or facts.templates > MOST_TEMPLATES:
                                facts.level = BY_ANCHOR
                                facts.unsettled = 1
                    elif facts.level == BY_ANCHOR:
                        slots[n] = _anchored(tree, here)
                    else:
                        slots[n] = TEXT
                    if facts.level == BY_ANCHOR and facts.anchors > MOST_ANCHORS:
                        facts.level = AS_ONE
                        facts.unsettled = 1
        first = last
