"""Places in the structure of texts, compiled: a tree of them, and JSON-like texts walked along it.

A place is what a number of one row has in common with numbers of other rows: a
path of keys and indices in JSON-like text, a column of a table (``tables``), a
word before it in other text (``wording``). Places are nodes of one tree, found
by (parent, kind, code) in a hash table; ``slots`` says what they mean and
which of them become one.
"""

from typing import NamedTuple

import numpy as np
from numba import from_dtype, int32, int64, types
from numpy.typing import NDArray

from numtok.arrays import Int32s
from numtok.data.reading.values import after_space, string_end
from numtok.encoding.row_keys import SPANS, TEXTS
from numtok.kernels import HASH_START, byte_at, hashed, inlined, kernel, struct, writes

NODES = 2048  # places at most; numbers at further ones are counted together
TUPLE = 8  # a list longer than this has no places of its own for its items
KEYS_OF_RECORD = 32  # an object of more keys than this is a map: its keys say no place
DEEPEST = 64  # brackets; text that is nested deeper is not taken as JSON-like

# Kinds of nodes.
FIXED, ITEM, ANY_ITEM, KEY, ANY_KEY, IN_KEYS, TARGET = range(7)
COLUMN, TEMPLATE, PLACE, ANCHOR, NTH = range(7, 12)
VARIES = -1  # as a ``length``: lists of different lengths, or long ones; as ``keys``: too many
INDEX = 4 * NODES  # room of the hash table

# Nodes that are always there: the JSON-like document, what has no place, other text, targets.
DOCUMENT, OTHER, TEXT, TARGETS = range(4)
FIXED_NODES = 4

#: A node; ``at`` and ``size`` say which bytes of the data name it, ``length`` that of its lists,
#: ``keys`` how many its objects have, ``coarser`` what its numbers become at the next level.
_NODE = ("parent", "kind", "code", "at", "size", "length", "keys", "coarser")
NODE = np.dtype([(name, np.int64) for name in _NODE], align=True)
#: Facts of a tree: the nodes in use, all and of some kinds; whether nodes have become one.
_FACTS = ("used", "unsettled", "level", "templates", "places", "anchors")
FACTS = np.dtype([(name, np.int64) for name in _FACTS], align=True)


class Tree(NamedTuple):
    """Places by parent, kind and code."""

    nodes: NDArray[np.void]  # NODE[NODES]
    table: Int32s  # [INDEX] hash table: 1 more than the node, or 0
    facts: NDArray[np.void]  # FACTS[1]

    @classmethod
    def new(cls, level: int) -> "Tree":
        """Make a tree that has only the fixed nodes."""
        facts = np.zeros(1, FACTS)
        facts[0]["used"], facts[0]["level"] = FIXED_NODES, level
        return cls(np.zeros(NODES, NODE), np.zeros(INDEX, np.int32), facts)


TREE = struct(
    Tree, nodes=writes(from_dtype(NODE)), table=writes(int32), facts=writes(from_dtype(FACTS))
)

_MULTIPLIER, _FOLD = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)

_OPEN_OBJECT = ord("{")
_CLOSER = np.zeros(256, np.uint8)  # of each opening bracket
_CLOSER[list(b"[({")] = list(b"])}")

# Classes of bytes. Words are numbers and true, None, NaN, 1e-5: all that stands outside of quotes.
_STRANGE, _WORD, _BLANK, _COMMA, _COLON, _OPEN, _CLOSE, _QUOTE = range(8)
_CLASS = np.full(256, _STRANGE, np.uint8)
_CLASS[: ord(" ") + 1] = _BLANK
_CLASS[list(b"0123456789+-._")] = _WORD
_CLASS[ord("A") : ord("Z") + 1] = _WORD
_CLASS[ord("a") : ord("z") + 1] = _WORD
_CLASS[ord(",")], _CLASS[ord(":")] = _COMMA, _COLON
_CLASS[list(b"[({")], _CLASS[list(b"])}")], _CLASS[list(b"'\"")] = _OPEN, _CLOSE, _QUOTE

# What may come next while brackets and commas are checked.
_VALUE, _VALUE_OR_CLOSE, _KEY_OR_CLOSE, _AFTER_KEY, _AFTER_COLON, _AFTER_VALUE = range(6)


@inlined
def child(tree, parent, kind, code, at, size):  # type: ignore[no-untyped-def]
    """The node of that kind and code below ``parent``, made if it is new and there is room.

    ``at`` and ``size`` say which bytes of the data name it, -1 if none do.
    """
    if parent == OTHER:
        return np.int64(OTHER)
    mix = (np.uint64(code) ^ np.uint64(parent * 16 + kind)) * _MULTIPLIER
    place = np.int64((mix >> _FOLD) & np.uint64(INDEX - 1))
    while tree.table[place] != 0:
        node = np.int64(tree.table[place]) - 1
        there = tree.nodes[node]
        if there.code == np.int64(code) and there.parent == parent and there.kind == kind:
            return node
        place = (place + 1) & (INDEX - 1)
    node = tree.facts[0].used
    if node == NODES:
        return np.int64(OTHER)
    made = tree.nodes[node]
    made.parent = parent
    made.kind = kind
    made.code = np.int64(code)
    made.at = at
    made.size = size
    made.length = 0
    made.keys = 0
    made.coarser = -1
    tree.table[place] = node + 1
    tree.facts[0].used = node + 1
    return node


@inlined
def _word_end(data, i, end, spans, n, last):  # type: ignore[no-untyped-def]
    """The end of the run of numbers and bare words at ``i``, ``i`` if there is none, and the first
    number behind it. No number before the ``n``-th begins at ``i`` or later."""
    while i < end:
        if n < last and spans.starts[n] == i:
            i = np.int64(spans.ends[n])  # a number is as long as its policy says, commas and all
            n += 1
        elif _CLASS[byte_at(data, i)] == _WORD:
            i += 1
        else:
            break
    return i, n


@inlined
def _lengths(data, begin, end, spans, first, last, lengths):  # type: ignore[no-untyped-def]
    """True for a text that is one list or object, in JSON or as Python prints it; the number of
    items of each list in it is in ``lengths``, in the order in which they begin."""
    openers = np.empty(DEEPEST, np.uint8)
    which = np.empty(DEEPEST, np.int64)
    depth = 0
    opened = 0
    n = first
    expected = _VALUE
    i = after_space(data, begin, end)
    if i == end or _CLASS[byte_at(data, i)] != _OPEN:
        return False
    while i < end:
        c = byte_at(data, i)
        kind = _CLASS[c]
        if kind == _BLANK:
            i += 1
        elif kind == _COMMA:
            if expected != _AFTER_VALUE:
                return False
            lengths[which[depth - 1]] += 1
            inside_object = openers[depth - 1] == _OPEN_OBJECT
            expected = _KEY_OR_CLOSE if inside_object else _VALUE_OR_CLOSE
            i += 1
        elif kind == _OPEN:
            if expected in (_KEY_OR_CLOSE, _AFTER_KEY, _AFTER_VALUE) or depth == DEEPEST:
                return False
            openers[depth] = c
            which[depth] = opened
            lengths[opened] = 0
            opened += 1
            depth += 1
            expected = _KEY_OR_CLOSE if c == _OPEN_OBJECT else _VALUE_OR_CLOSE
            i += 1
        elif kind == _CLOSE:
            depth -= 1
            if c != _CLOSER[openers[depth]] or expected in (_AFTER_KEY, _AFTER_COLON):
                return False
            lengths[which[depth]] += expected == _AFTER_VALUE
            expected = _AFTER_VALUE
            i += 1
            if depth == 0:
                return after_space(data, i, end) == end
        elif kind == _COLON:
            if expected != _AFTER_KEY:
                return False
            expected = _AFTER_COLON
            i += 1
        else:
            if expected in (_AFTER_VALUE, _AFTER_KEY):
                return False
            if kind == _QUOTE:
                stop = string_end(data, i, end) + 1
                if stop > end:
                    return False
                while n < last and spans.starts[n] < stop:
                    n += 1
            else:
                stop, n = _word_end(data, i, end, spans, n, last)
                if stop == i:
                    return False
            expected = _AFTER_KEY if expected == _KEY_OR_CLOSE else _AFTER_VALUE
            i = stop
    return False


@inlined
def _enter_list(tree, node, length):  # type: ignore[no-untyped-def]
    """Take notice of one list at ``node``; True if its items have places of their own so far."""
    if node == OTHER:
        return False
    known = tree.nodes[node].length
    if known == 0 and length <= TUPLE:
        tree.nodes[node].length = length
        return True
    if known == length:
        return True
    if known > 0:
        tree.facts[0].unsettled = 1  # there are places of items, which become one
    tree.nodes[node].length = VARIES
    return False


@inlined
def _enter_key(tree, node, code, at, size):  # type: ignore[no-untyped-def]
    """The place of the value behind a key of the object at ``node``."""
    if tree.nodes[node].keys != VARIES:
        before = tree.facts[0].used
        found = child(tree, node, KEY, code, at, size)
        if tree.facts[0].used == before:
            return found
        tree.nodes[node].keys += 1
        if tree.nodes[node].keys <= KEYS_OF_RECORD:
            return found
        tree.nodes[node].keys = VARIES
        tree.facts[0].unsettled = 1
    return child(tree, node, ANY_KEY, 0, -1, 0)


@inlined
def _walk(  # type: ignore[no-untyped-def]
    data, begin, end, spans, first, last, lengths, tree, slots
):
    """Give each number of a JSON-like text the node that it stands at."""
    container = np.empty(DEEPEST, np.int64)  # the node of each list or object around
    item = np.empty(DEEPEST, np.int64)  # of a list, the index of the current item; -1: no list
    every = np.empty(DEEPEST, np.int64)  # of a list, the one node of all its items, or -1
    depth = 0
    opened = 0
    n = first
    node = np.int64(DOCUMENT)
    key = False  # the next string is a key
    i = begin
    while i < end:
        c = byte_at(data, i)
        kind = _CLASS[c]
        if kind in (_BLANK, _COLON):
            i += 1
        elif kind == _COMMA:
            if item[depth - 1] < 0:
                key = True
            else:
                item[depth - 1] += 1
                node = every[depth - 1]
                if node < 0:
                    node = child(tree, container[depth - 1], ITEM, item[depth - 1], -1, 0)
            i += 1
        elif kind == _OPEN:
            container[depth] = node
            item[depth] = -1 if c == _OPEN_OBJECT else 0
            every[depth] = -1
            key = c == _OPEN_OBJECT
            if not key and lengths[opened] > 0:  # an empty list says nothing of the others
                if _enter_list(tree, node, np.int64(lengths[opened])):
                    node = child(tree, node, ITEM, 0, -1, 0)
                else:
                    node = child(tree, node, ANY_ITEM, 0, -1, 0)
                    every[depth] = node
            opened += 1
            depth += 1
            i += 1
        elif kind == _CLOSE:
            depth -= 1
            key = False
            i += 1
        else:
            quoted = kind == _QUOTE
            number = n
            if quoted:
                stop = string_end(data, i, end) + 1
                while n < last and spans.starts[n] < stop:
                    n += 1
            else:
                stop, n = _word_end(data, i, end, spans, n, last)
            holder = node
            if key:
                at, size = i + quoted, stop - i - 2 * quoted
                code = hashed(data, at, at + size, HASH_START)
                node = _enter_key(tree, container[depth - 1], code, at, size)
                key = False
                if number < n:
                    holder = child(tree, container[depth - 1], IN_KEYS, 0, -1, 0)
            for k in range(number, n):
                slots[k] = holder
            i = stop


@kernel(int64(TEXTS, SPANS, writes(int32), TREE, writes(int32), writes(types.boolean)))
def walk(texts, spans, lengths, tree, slots, json_like):  # type: ignore[no-untyped-def]
    """Find the place of each number of the JSON-like rows; ``json_like`` says which they are.

    Returns how many rows there are of that kind.
    """
    first = np.int64(0)
    found = 0
    for row in range(len(spans.counts)):
        last = first + np.int64(spans.counts[row])
        begin, end = np.int64(texts.rows[row]), np.int64(texts.rows[row + 1])
        alike = last > first and _lengths(texts.data, begin, end, spans, first, last, lengths)
        json_like[row] = alike
        if alike:
            found += 1
            _walk(texts.data, begin, end, spans, first, last, lengths, tree, slots)
        first = last
    return found


@kernel(int64(TREE, int64, int64, int64))
def add(tree, parent, kind, code):  # type: ignore[no-untyped-def]
    """:func:`child` for those who are not compiled; the node is named elsewhere."""
    return child(tree, parent, kind, code, -1, 0)
