"""places: compiled tree of places, and functions that assign numbers in JSON-like texts to places.

A place is a location that recurs from row to row: a path of keys and indices in JSON-like text, a
column of a table (``tables``), or the preceding words in other text (``wording``). Places are the
nodes of one tree; a hash table finds a node by its parent, kind and code. The module ``fields``
defines the meaning of places and decides which of them are merged.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Int32s
from numtok.data.reading.values import after_space, string_end
from numtok.encoding.row_keys import SPANS, TEXTS
from numtok.kernel_types import boolean, int32, int64, struct, writes
from numtok.kernels import HASH_START, byte_at, hashed, inlined, kernel

NODES = 2048  # maximum number of places; numbers at further ones are counted together
TUPLE = 8  # the items of a longer list share a place
KEYS_OF_RECORD = 32  # an object with more keys is a map: its values share a place
DEEPEST = 64  # brackets; deeper nested text is not treated as JSON-like

# Kinds of nodes.
FIXED, ITEM, ANY_ITEM, KEY, ANY_KEY, IN_KEYS, TARGET = range(7)
COLUMN, TEMPLATE, PLACE, ANCHOR, NTH = range(7, 12)
VARIES = -1  # as a ``length``: lists of different lengths, or long ones; as ``keys``: too many
INDEX = 4 * NODES  # room of the hash table

# Nodes that always exist: the JSON-like document, numbers without a place, other text, targets.
DOCUMENT, OTHER, TEXT, TARGETS = range(4)
FIXED_NODES = 4

#: A node. ``at`` and ``size`` are the bytes of the data that name it, ``length`` is the length of
#: its lists, ``keys`` the number of keys of its objects, ``coarser`` its node at the next level.
_NODE = ("parent", "kind", "code", "at", "size", "length", "keys", "coarser")
NODE = np.dtype([(name, np.int64) for name in _NODE], align=True)
#: Facts of a tree: number of nodes in use, in total and of some kinds; whether nodes were merged.
_FACTS = ("used", "unsettled", "level", "templates", "places", "anchors")
FACTS = np.dtype([(name, np.int64) for name in _FACTS], align=True)


class Tree(NamedTuple):
    """Tree of places, with a hash table that finds a node by its parent, kind and code."""

    nodes: NDArray[np.void]  # NODE[NODES]
    table: Int32s  # [INDEX] hash table: 1 more than the node, or 0
    facts: NDArray[np.void]  # FACTS[1]

    @classmethod
    def new(cls, level: int) -> "Tree":
        """Create a tree that contains only the nodes that every tree has. ``level`` is the finest
        level of places in texts that are neither JSON-like nor tables (see ``wording``)."""
        facts = np.zeros(1, FACTS)
        facts[0]["used"], facts[0]["level"] = FIXED_NODES, level
        return cls(np.zeros(NODES, NODE), np.zeros(INDEX, np.int32), facts)


TREE = struct(Tree, nodes=writes(NODE), table=writes(int32), facts=writes(FACTS))

_MULTIPLIER, _FOLD = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)

_OPEN_OBJECT = ord("{")
_CLOSER = np.zeros(256, np.uint8)  # of each opening bracket
_CLOSER[list(b"[({")] = list(b"])}")

# Classes of bytes. Words are numbers and true, None, NaN, 1e-5: everything outside of quotes.
_STRANGE, _WORD, _BLANK, _COMMA, _COLON, _OPEN, _CLOSE, _QUOTE = range(8)
_CLASS = np.full(256, _STRANGE, np.uint8)
_CLASS[: ord(" ") + 1] = _BLANK
_CLASS[list(b"0123456789+-._")] = _WORD
_CLASS[ord("A") : ord("Z") + 1] = _WORD
_CLASS[ord("a") : ord("z") + 1] = _WORD
_CLASS[ord(",")], _CLASS[ord(":")] = _COMMA, _COLON
_CLASS[list(b"[({")], _CLASS[list(b"])}")], _CLASS[list(b"'\"")] = _OPEN, _CLOSE, _QUOTE

# Expected next element while checking brackets and commas.
_VALUE, _VALUE_OR_CLOSE, _KEY_OR_CLOSE, _AFTER_KEY, _AFTER_COLON, _AFTER_VALUE = range(6)


@inlined
def child(tree, parent, kind, code, at, size):  # type: ignore[no-untyped-def]
    """Return the child of ``parent`` with this kind and code. It is created if necessary; if the
    tree is full, the node ``OTHER`` is returned.

    ``at`` and ``size`` are the offset and length of the node's name in the data. ``at`` is -1 if
    the node has no name.
    """
    if parent == OTHER:
        return np.int64(OTHER)
    mix = (np.uint64(code) ^ np.uint64(parent * 16 + kind)) * _MULTIPLIER
    index = np.int64((mix >> _FOLD) & np.uint64(INDEX - 1))
    while tree.table[index] != 0:
        node = np.int64(tree.table[index]) - 1
        entry = tree.nodes[node]
        if entry.code == np.int64(code) and entry.parent == parent and entry.kind == kind:
            return node
        index = (index + 1) & (INDEX - 1)
    node = tree.facts[0].used
    if node == NODES:
        return np.int64(OTHER)
    fresh = tree.nodes[node]
    fresh.parent = parent
    fresh.kind = kind
    fresh.code = np.int64(code)
    fresh.at = at
    fresh.size = size
    fresh.length = 0
    fresh.keys = 0
    fresh.coarser = -1
    tree.table[index] = node + 1
    tree.facts[0].used = node + 1
    return node


@inlined
def _word_end(data, i, end, spans, n, last):  # type: ignore[no-untyped-def]
    """Return the end of the run of numbers and bare words at ``i`` (``i`` if it is empty), and the
    index of the first number after it. Numbers before the ``n``-th begin before ``i``."""
    while i < end:
        if n < last and spans.starts[n] == i:
            i = np.int64(spans.ends[n])  # the numeral policy defines the end, including commas
            n += 1
        elif _CLASS[byte_at(data, i)] == _WORD:
            i += 1
        else:
            break
    return i, n


@inlined
def _lengths(data, begin, end, spans, first, last, lengths, stacks):  # type: ignore[no-untyped-def]
    """Return whether a text is one list or object, in JSON or as Python prints it. ``lengths``
    receives the number of items of each list, in the order in which the lists begin."""
    openers, which = stacks[0], stacks[1]
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
    """Record a list at ``node``. Returns whether its items still have separate places."""
    if node == OTHER:
        return False
    previous = tree.nodes[node].length
    if previous == 0 and length <= TUPLE:
        tree.nodes[node].length = length
        return True
    if previous == length:
        return True
    if previous > 0:
        tree.facts[0].unsettled = 1  # existing places of items must be merged
    tree.nodes[node].length = VARIES
    return False


@inlined
def _enter_key(tree, node, code, at, size):  # type: ignore[no-untyped-def]
    """Return the place of the value of a key in the object at ``node``."""
    if tree.nodes[node].keys != VARIES:
        before = tree.facts[0].used
        place = child(tree, node, KEY, code, at, size)
        if tree.facts[0].used == before:
            return place
        tree.nodes[node].keys += 1
        if tree.nodes[node].keys <= KEYS_OF_RECORD:
            return place
        tree.nodes[node].keys = VARIES
        tree.facts[0].unsettled = 1
    return child(tree, node, ANY_KEY, 0, -1, 0)


@inlined
def _walk(  # type: ignore[no-untyped-def]
    data, begin, end, spans, first, last, lengths, stacks, tree, fields
):
    """Assign each number of a JSON-like text to its node."""
    container = stacks[0]  # node of each enclosing list or object
    item = stacks[1]  # index of the current item of a list; -1 for an object
    every = stacks[2]  # shared node of all items of a list, or -1
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
            if not key and lengths[opened] > 0:  # empty lists are ignored
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
                fields[k] = holder
            i = stop


@kernel(int64(TEXTS, SPANS, writes(int32), writes(int64, 2), TREE, writes(int32), writes(boolean)))
def walk(texts, spans, lengths, stacks, tree, fields, json_like):  # type: ignore[no-untyped-def]
    """Assign each number in JSON-like rows to its place. Returns the number of JSON-like rows.

    ``fields`` receives the node of each number. ``json_like`` receives True for each JSON-like row
    and False for all others. ``lengths`` and ``stacks``, int64[3, DEEPEST], are working memory.
    """
    first = np.int64(0)
    rows_found = 0
    for row in range(len(spans.counts)):
        last = first + np.int64(spans.counts[row])
        begin, end = np.int64(texts.rows[row]), np.int64(texts.rows[row + 1])
        alike = last > first and _lengths(
            texts.data, begin, end, spans, first, last, lengths, stacks
        )
        json_like[row] = alike
        if alike:
            rows_found += 1
            _walk(texts.data, begin, end, spans, first, last, lengths, stacks, tree, fields)
        first = last
    return rows_found


@kernel(int64(TREE, int64, int64, int64))
def add(tree, parent, kind, code):  # type: ignore[no-untyped-def]
    """Python entry point for :func:`child`, for a node whose name is not stored in the input
    bytes."""
    return child(tree, parent, kind, code, -1, 0)
