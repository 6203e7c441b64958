"""wording: compiled function that assigns numbers to places by the words before them.

It applies to texts that are neither JSON-like nor tables. There are three levels, each coarser than
the previous one. ``fields`` decides which is used:

- A *place* in a template. The template consists of the words of the row up to its last number, and
  the place is the number of words before the number.
- An *anchor*, which is the last word on the line before the number.
- The whole text.

At a place or an anchor, numbers are counted from the last word or, without a preceding word, from
the beginning of the line: ``1.5 2.5 3.5`` are at the first, second and third place, regardless of
signs and brackets between them.

Words that differ only in their digits are treated as equal: ``T13`` and ``T14`` are both ``T#``.
"""

import numpy as np

from numtok.encoding.fields.places import (
    ANCHOR,
    NTH,
    PLACE,
    TEMPLATE,
    TEXT,
    TREE,
    child,
)
from numtok.encoding.row_keys import SPANS, TEXTS
from numtok.kernel_types import boolean, int32, reads, void, writes
from numtok.kernels import HASH_START, byte_at, inlined, kernel

BY_TEMPLATE, BY_ANCHOR, AS_ONE = range(3)  # the levels
MOST_TEMPLATES = 8  # with more templates, rows are considered different
MOST_PLACES = 64  # in all templates together
MOST_ANCHORS = 48  # anchors with the numbers after each
LAST_NTH = 16  # numbers after the same word with separate places
NTHS = 32  # the code of a place is word * NTHS + index of the number after the word
_EXAMPLE = 200  # bytes of the first row of a template, kept as an example

_NEWLINE, _DIGITS = ord("\n"), ord("#")  # "#" replaces a run of digits in a word
_IN_WORD = np.zeros(256, np.uint8)  # replacement of each byte in a word; 0 if not part of a word
_IN_WORD[ord("A") : ord("Z") + 1] = range(ord("A"), ord("Z") + 1)
_IN_WORD[ord("a") : ord("z") + 1] = range(ord("a"), ord("z") + 1)
_IN_WORD[0x80:] = range(0x80, 256)
_IN_WORD[ord("_")] = ord("_")
_IN_WORD[list(b"0123456789")] = _DIGITS
_MULTIPLIER, _SEED = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x243F6A8885A308D3)


#: Position of a number: the count of words before it in its row, the count of numbers since the
#: last word (including this one), and the hash, first byte and size of that word; 0, -1 and 0 if
#: there is none on its line.
MEASURED = np.dtype(
    [("words", "i8"), ("nth", "i8"), ("anchor", "u8"), ("at", "i8"), ("size", "i8")], align=True
)


@inlined
def _word(data, i, stop):  # type: ignore[no-untyped-def]
    """Return the hash of the word at ``i``, and its end."""
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
    data, begin, spans, first, last, measured
):
    """Measure the position of each number of a row among the words. Returns the template's code."""
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
        here = measured[n]
        here.words = count
        here.nth = nth
        here.anchor = anchor
        here.at = anchor_at
        here.size = anchor_size
        i = np.int64(spans.ends[n])
    return template


@inlined
def _anchored(tree, here):  # type: ignore[no-untyped-def]
    """Return the node for the anchor of a number and its index after the anchor."""
    before = tree.facts[0].used
    anchor = child(tree, TEXT, ANCHOR, here.anchor, here.at, here.size)
    node = child(tree, anchor, NTH, np.uint64(here.nth), -1, 0)
    if tree.facts[0].used > before:
        tree.facts[0].anchors += 1
    return node


@kernel(void(TEXTS, SPANS, reads(boolean), writes(MEASURED), TREE, writes(int32)))
def place(texts, spans, placed, measured, tree, fields):  # type: ignore[no-untyped-def]
    """Assign each number to its place, in rows that are not yet ``placed``. ``fields`` receives the
    node of each number. ``measured`` is working memory."""
    facts = tree.facts[0]
    first = np.int64(0)
    for row in range(len(spans.counts)):
        last = first + np.int64(spans.counts[row])
        if last > first and not placed[row]:
            if facts.level == AS_ONE:
                for n in range(first, last):
                    fields[n] = TEXT
            else:
                begin = np.int64(texts.rows[row])
                code = _measure(texts.data, begin, spans, first, last, measured)
                template = np.int64(-1)
                if facts.level == BY_TEMPLATE:
                    before = facts.used
                    size = min(np.int64(texts.rows[row + 1]) - begin, _EXAMPLE)
                    template = child(tree, TEXT, TEMPLATE, code, begin, size)
                    facts.templates += facts.used > before
                for n in range(first, last):
                    here = measured[n]
                    if facts.level == BY_TEMPLATE:
                        before = facts.used
                        # Numbers with and without a preceding word on their line have
                        # different anchors, so they are different places.
                        code_of_place = np.uint64(
                            (2 * here.words + (here.anchor == 0)) * NTHS + here.nth
                        )
                        field = child(tree, template, PLACE, code_of_place, here.at, here.size)
                        fields[n] = field
                        if facts.used > before:
                            facts.places += 1
                            tree.nodes[field].coarser = _anchored(tree, here)
                            if facts.places > MOST_PLACES or facts.templates > MOST_TEMPLATES:
                                facts.level = BY_ANCHOR
                                facts.unsettled = 1
                    elif facts.level == BY_ANCHOR:
                        fields[n] = _anchored(tree, here)
                    else:
                        fields[n] = TEXT
                    if facts.level == BY_ANCHOR and facts.anchors > MOST_ANCHORS:
                        facts.level = AS_ONE
                        facts.unsettled = 1
        first = last
