"""fields: positions of numbers in the structure that rows have in common.

The field of a number follows from the rules below. They do not depend on the order of the rows or
on how the rows are divided into units of work (up to ``places.NODES`` places; any further places
share the field ``(elsewhere)``):

1. A target of the row is in the field with the target's name.
2. In a row that is one list or object, in JSON or as Python prints it, the field is
   the path of keys and indices: ``data[][0]``, ``description.planet0.m``. An index
   is kept if all lists at that path (except empty ones, and lists in rows without
   numbers) have the same length of at most 8 (a tuple). Otherwise all items share
   ``[]``. Keys are kept unless the objects at that path have more than 32 keys in
   total (a map, ``*``). Numbers in a string are at the path of the string, numbers
   in a key at ``(keys)``.
3. In a row that consists of lines of a table, the field is the column: ``column 2``.
4. In other rows, the field is the position in the row's template, which consists of
   the words up to the last number: ``#2 after "temperature"``. This requires that
   there are few templates (at most 8, with 64 places) and that most numbers have a
   place that recurs. Otherwise the field is the word before the number, in
   every template. This requires that there are few such words (at most 48) and that most
   numbers follow a word that occurs in a tenth of the rows. Otherwise all numbers of
   such rows share the field ``text``.

Each decision only makes fields coarser. Statistics are kept for the finest fields and merged
afterwards, so one pass over the data is enough.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any

import numpy as np

from numtok.arrays import Floats, Int32s
from numtok.encoding.fields import places, tables, wording
from numtok.encoding.fields.places import (
    ANCHOR,
    ANY_ITEM,
    ANY_KEY,
    COLUMN,
    DOCUMENT,
    FIXED_NODES,
    IN_KEYS,
    ITEM,
    KEY,
    KEYS_OF_RECORD,
    NTH,
    OTHER,
    PLACE,
    TARGET,
    TARGETS,
    TEMPLATE,
    TEXT,
    VARIES,
    Tree,
)
from numtok.encoding.texts import Texts
from numtok.kernels import read_only
from numtok.numerals.find import Spans

_WHOLE = -1  # root above the JSON-like document, the other text and the targets
_LONGEST_NAME = 200  # bytes of a key, a word or an example
_REPEATED_IN = 0.1  # fraction of the rows in which a word must occur to define a field
_DIGITS = re.compile("[0-9]+")  # in a word; their values are ignored
_TEXT_KINDS = (TEMPLATE, PLACE, ANCHOR, NTH)


class Fields:
    """Tree of the places where numbers occur in a set of rows. A place is a location that recurs
    from row to row, such as a path of keys (see :mod:`numtok.encoding.fields.places`).

    Each node of the tree stands for a field until :func:`merge` maps it to another node. Workers
    return a tree for each unit of work.
    """

    def __init__(self, level: int = wording.BY_TEMPLATE) -> None:
        """Create an empty tree. ``level`` is the finest level of places in other texts
        (``wording``)."""
        self._tree = Tree.new(level)
        self._names = [""] * FIXED_NODES
        self._text_rows = 0  # rows that are neither JSON-like nor lines of a table

    def __len__(self) -> int:
        return int(self._facts["used"])

    def assign(self, texts: Texts, spans: Spans) -> Int32s:
        """Add the places of the numbers in the given texts to the tree. Returns the node of each
        number, int32[numbers].

        If :attr:`unsettled` is true afterwards, :func:`merge` must be called next.
        """
        numbers = len(spans.starts)
        fields = np.full(numbers, OTHER, np.int32)
        placed = np.zeros(len(spans.counts), np.bool_)
        # Each list needs two bytes for its brackets, except for unclosed ones.
        longest = int(np.diff(texts.rows).max(initial=0))
        lengths = np.empty(longest // 2 + places.DEEPEST, np.int32)
        tree, read = self._tree, (read_only(texts), read_only(spans.offsets))
        stacks = np.empty((3, places.DEEPEST), np.int64)
        alike = places.walk(*read, lengths, stacks, tree, fields, placed)
        alike += tables.columns(*read, placed, np.empty(numbers, np.int64), tree, fields)
        text_rows = int((spans.counts > 0).sum()) - int(alike)
        if text_rows:
            self._text_rows += text_rows
            wording.place(*read, placed, np.empty(numbers, wording.MEASURED), tree, fields)
        for node in range(len(self._names), len(self)):
            at, size = self._of(node, "at"), self._of(node, "size")
            name = texts.data[at : at + min(size, _LONGEST_NAME)].tobytes() if at >= 0 else b""
            self._names.append(_named(self._of(node, "kind"), name.decode(errors="ignore")))
        return fields

    def target(self, name: str) -> int:
        """Return the node for targets with this name. It is created if necessary."""
        code = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), signed=True)
        return self._add(TARGETS, TARGET, code, name)

    @property
    def unsettled(self) -> bool:
        """True if existing nodes must be merged by :func:`merge`."""
        return bool(self._facts["unsettled"])

    def next_level(self, counts: Floats, rows: Floats) -> bool:
        """Make fields coarser in texts that are neither JSON-like nor tables, if too few of the
        places in these texts recur. Returns True if fields were made coarser, in which case
        :func:`merge` must be called next.

        counts
            float64[nodes], number of numbers at each node.
        rows
            float64[nodes], number of rows with a number at each node.
        """
        level = int(self._facts["level"])
        if level == wording.AS_ONE:
            return False
        kind = PLACE if level == wording.BY_TEMPLATE else NTH
        least = 2.0 if kind == PLACE else max(2.0, _REPEATED_IN * self._text_rows)
        nodes = [node for node in range(len(self)) if self._of(node, "kind") == kind]
        again = [node for node in nodes if rows[node] >= least]
        if 2 * counts[again].sum() >= counts[nodes].sum():
            return False
        self._facts["level"] = level + 1
        return True

    def ordered(self, where: Mapping[int, tuple[int, int]]) -> list[int]:
        """Return the nodes in ``where`` in the order in which they occur in the text, with the
        children of each node kept together.

        where
            Position of each node: its distance from the beginning of a row, and its rank among the
            nodes at the same distance.
        """
        nearest: dict[int, tuple[int, int]] = {}
        below: dict[int, set[int]] = defaultdict(set)
        for node, position in where.items():
            child = node
            while child != _WHOLE:
                nearest[child] = min(position, nearest.get(child, position))
                parent = self._of(child, "parent") if child >= FIXED_NODES else _WHOLE
                parent = _WHOLE if parent == TARGETS else parent
                below[parent].add(child)
                child = parent
        nodes: list[int] = []

        def visit(node: int) -> None:
            if node in where:
                nodes.append(node)
            for child in sorted(below[node], key=lambda child: (nearest[child], self.key(child))):
                visit(child)

        visit(_WHOLE)
        return nodes

    def as_found(self, node: int) -> bool:
        """Return whether a node always stands for a single place, and never for several merged
        places, regardless of how the rows are divided into parts."""
        original = node not in (OTHER, TEXT)
        while node >= FIXED_NODES:
            original = original and self._of(node, "kind") not in (ANY_ITEM, ANY_KEY, ANCHOR)
            node = self._of(node, "parent")
        return original

    def in_words(self, node: int) -> bool:
        """Return whether a node is a place among the words of a text that is neither JSON-like nor
        a table."""
        return self._of(node, "kind") in (PLACE, NTH)

    def key(self, node: int) -> list[tuple[int, int, str, int]]:
        """Return a sort key that identifies a node, regardless of the order of the rows."""
        steps = []
        while node >= FIXED_NODES:
            kind = self._of(node, "kind")
            name = self._names[node] if kind in (KEY, TARGET) else ""
            steps.append((kind, len(name), name, self._of(node, "code")))
            node = self._of(node, "parent")
        return [(node, 0, "", 0), *reversed(steps)]

    def labels(self, nodes: Sequence[int]) -> dict[int, str]:
        """Return a unique label for each node. ``nodes`` must be in the order of
        :meth:`ordered`."""
        templates = self._templates(nodes)
        nths = self._nths(nodes)
        labels: dict[int, str] = {}
        taken: dict[str, int] = defaultdict(int)
        for node in nodes:
            kind, name = self._of(node, "kind"), self._names[node]
            if kind == PLACE:
                template = self._of(node, "parent")
                last = self._of(node, "code") % wording.NTHS > wording.LAST_NTH
                label = _nth(nths[node], name, last)
                if len(templates) > 1:
                    label = f"{_letter(templates.index(template))} {label}"
            elif kind == NTH:
                nth = self._of(node, "code")
                label = _nth(nth, self._names[self._of(node, "parent")], nth > wording.LAST_NTH)
            elif kind == TARGET:
                label = name
            else:
                label = {TEXT: "text", OTHER: "(elsewhere)"}.get(node) or self._path(node)
            taken[label] += 1
            labels[node] = label if taken[label] == 1 else f"{label} ({taken[label]})"
        return labels

    def examples(self, nodes: Sequence[int]) -> dict[str, str]:
        """Return the beginning of an example row for each template. The keys are the letters that
        stand for the templates in the labels of ``nodes``. The result is empty if there is only one
        template."""
        templates = self._templates(nodes)
        if len(templates) < 2:
            return {}
        return {_letter(k): self._names[node] for k, node in enumerate(templates)}

    def _templates(self, nodes: Sequence[int]) -> list[int]:
        """Return the templates of places, in the order of the nodes."""
        own = [self._of(node, "parent") for node in nodes if self._of(node, "kind") == PLACE]
        return list(dict.fromkeys(own))

    def _nths(self, nodes: Sequence[int]) -> dict[int, int]:
        """Return the index of the number at each place in a template, among the numbers that follow
        equal words."""
        nths: dict[int, int] = {}
        counted: dict[tuple[int, str], int] = {}  # numbers so far, by template and word
        current: dict[tuple[int, str], tuple[int, int]] = {}  # last such word, numbers before it
        own = [node for node in nodes if self._of(node, "kind") == PLACE]
        for node in sorted(own, key=lambda node: self._of(node, "code")):
            word, nth = divmod(self._of(node, "code"), wording.NTHS)
            key = self._of(node, "parent"), self._names[node]
            if key not in current or current[key][0] != word:
                current[key] = word, counted.get(key, 0)
            counted[key] = nths[node] = current[key][1] + nth
        return nths

    def _path(self, node: int) -> str:
        """Return the path of a node, such as ``description.coords[][1]``."""
        parts: list[str] = []
        while node >= FIXED_NODES:
            parts.append(_step(self._of(node, "kind"), self._of(node, "code"), self._names[node]))
            node = self._of(node, "parent")
        return "".join(reversed(parts)).removeprefix(".")

    @property
    def _facts(self) -> np.void:
        facts: np.void = self._tree.facts[0]
        return facts

    def _of(self, node: int, field: str) -> int:
        return int(self._tree.nodes[node][field])

    def _add(self, parent: int, kind: int, code: int, name: str) -> int:
        node = int(places.add(self._tree, parent, kind, code))
        if node == len(self._names):
            self._names.append(name)
        return node

    def _put(self, node: int, field: str, value: int) -> None:
        self._tree.nodes[node][field] = value


def merge(parts: Sequence[Fields]) -> tuple[Fields, list[Int32s]]:
    """Merge the trees of all parts of the data. Returns the merged tree and, for each part, the new
    node of each of its nodes, int32[nodes]."""
    merged = Fields()
    merged._text_rows = sum(part._text_rows for part in parts)
    became = [np.full(len(part), OTHER, np.int32) for part in parts]
    depths: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, part in enumerate(parts):
        depth = np.zeros(len(part), np.int64)
        became[number][:FIXED_NODES] = range(FIXED_NODES)
        depths[0].append((number, DOCUMENT))
        for node in range(FIXED_NODES, len(part)):
            depth[node] = depth[part._of(node, "parent")] + 1
            depths[int(depth[node])].append((number, node))
    level = _level(parts)
    merged._facts["level"] = level
    for at in sorted(depths):  # upper levels decide which nodes below stay separate
        among = depths[at]
        for number, node in among if at else ():
            became[number][node] = _merged_node(merged, parts[number], became[number], node, level)
        keys: dict[int, set[int]] = defaultdict(set)
        for number, node in depths.get(at + 1, ()):
            if parts[number]._of(node, "kind") == KEY:
                parent = int(became[number][parts[number]._of(node, "parent")])
                keys[parent].add(parts[number]._of(node, "code"))
        for number, node in among:
            _combine(merged, int(became[number][node]), parts[number], node)
        for node, codes in keys.items():
            varies = merged._of(node, "keys") == VARIES or len(codes) > KEYS_OF_RECORD
            merged._put(node, "keys", VARIES if varies else len(codes))
    for number, part in enumerate(parts):
        for node in range(FIXED_NODES, len(part)):
            if part._of(node, "kind") == PLACE:
                coarser = int(became[number][part._of(node, "coarser")])
                if level == wording.BY_TEMPLATE:
                    merged._put(int(became[number][node]), "coarser", coarser)
                else:
                    became[number][node] = coarser
    kinds = [merged._of(node, "kind") for node in range(FIXED_NODES, len(merged))]
    for fact, kind in (("templates", TEMPLATE), ("places", PLACE), ("anchors", NTH)):
        merged._facts[fact] = kinds.count(kind)
    return merged, became


def _merged_node(merged: Fields, part: Fields, became: Int32s, node: int, level: int) -> int:
    """Return the node in ``merged`` for a node of ``part`` whose parent is already merged."""
    kind, code, name = part._of(node, "kind"), part._of(node, "code"), part._names[node]
    parent = int(became[part._of(node, "parent")])
    if kind in _TEXT_KINDS:
        if level == wording.AS_ONE or (level == wording.BY_ANCHOR and kind in (TEMPLATE, PLACE)):
            return TEXT  # places get their anchor once all anchors exist
    elif kind == TARGET:
        return merged.target(name)
    elif kind == ITEM and merged._of(parent, "length") == VARIES:
        kind, code, name = ANY_ITEM, 0, ""
    elif kind == KEY and merged._of(parent, "keys") == VARIES:
        kind, code, name = ANY_KEY, 0, ""
    return merged._add(parent, kind, code, name)


def _combine(merged: Fields, into: int, part: Fields, node: int) -> None:
    """Add what ``part`` recorded about the lists and objects at a node."""
    length, added = merged._of(into, "length"), part._of(node, "length")
    if added and length != added:
        merged._put(into, "length", VARIES if length else added)
    if part._of(node, "keys") == VARIES:
        merged._put(into, "keys", VARIES)


def _level(parts: Sequence[Fields]) -> int:
    """Return how coarse the places of texts must be for all parts together."""
    level = max(int(part._facts["level"]) for part in parts)
    seen: dict[int, set[Any]] = {kind: set() for kind in _TEXT_KINDS}
    for part in parts:
        for node in range(FIXED_NODES, len(part)):
            kind = part._of(node, "kind")
            if kind in _TEXT_KINDS:
                parent = part._of(part._of(node, "parent"), "code")
                seen[kind].add((parent, part._of(node, "code")))
    if level == wording.BY_TEMPLATE and (
        len(seen[TEMPLATE]) > wording.MOST_TEMPLATES or len(seen[PLACE]) > wording.MOST_PLACES
    ):
        level = wording.BY_ANCHOR
    if level == wording.BY_ANCHOR and len(seen[NTH]) > wording.MOST_ANCHORS:
        level = wording.AS_ONE
    return level


def _step(kind: int, code: int, name: str) -> str:
    """Return one step of a path as text."""
    if kind == KEY:
        plain = name and not any(char in ".[]\"' " or not char.isprintable() for char in name)
        return f".{name}" if plain else f"[{name!r}]"
    if kind == COLUMN:
        column, nth = divmod(code % ((tables.MOST_COLUMNS + 1) * tables.NTHS), tables.NTHS)
        on = " on" if column == tables.MOST_COLUMNS else ""
        where = f"column {column + 1}{on}"
        return where if nth == 1 else f"{_nth(nth, '', nth > tables.LAST_NTH)} in {where}"
    return {ITEM: f"[{code}]", ANY_ITEM: "[]", ANY_KEY: ".*", IN_KEYS: ".(keys)"}[kind]


def _named(kind: int, written: str) -> str:
    """Return the display form of a key or a word."""
    if kind in (PLACE, ANCHOR):
        return _DIGITS.sub("#", written)
    if kind == KEY and "\\" in written:
        with suppress(ValueError):  # a truncated key, or one printed by Python
            decoded: str = json.loads(f'"{written}"', strict=False)
            decoded.encode()  # a lone surrogate cannot be printed
            return decoded
    return written


def _nth(nth: int, word: str, on: bool) -> str:
    """Return a label such as ``#2 after "sum"``; the first number after a word has no index."""
    count = f"#{nth} on" if on else f"#{nth}"
    if not word:
        return count
    return f'after "{word}"' if nth == 1 else f'{count} after "{word}"'


def _letter(index: int) -> str:
    return chr(ord("A") + index)
