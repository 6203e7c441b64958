"""Mutants drawn at random: of functions drawn by a seed one small change each."""

import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.mutants.mutant import ROOT, Mutant

_LEFT_OUT = re.compile(r"__init__|__main__|_contract\w*|contracts|reference|version")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
_CRASHING = ("axis", "dim", "strict")  # arguments: of other ones nothing is worked out at all
_NAMES = {"min": "max", "minimum": "maximum", "any": "all", "floor": "ceil", "argmin": "argmax"}
_NAMES |= {other: one for one, other in _NAMES.items()}


class _Change(NamedTuple):
    """The bytes from ``begin`` to ``end`` become ``new``."""

    begin: int
    end: int
    new: bytes
    what: str


class _File:
    """One source, with the places of its nodes in bytes."""

    def __init__(self, path: Path) -> None:
        self.name = path.relative_to(ROOT).as_posix()
        self.content = path.read_bytes()
        self.tree = ast.parse(self.content)
        self._lines = [0]
        for line in self.content.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def ends(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        first = self._lines[node.lineno - 1] + node.col_offset
        return first, self._lines[node.end_lineno - 1] + node.end_col_offset

    def functions(self) -> Iterator[tuple[str, _Function]]:
        def found(body: list[ast.stmt], before: str) -> Iterator[tuple[str, _Function]]:
            for one in body:
                if isinstance(one, ast.ClassDef):
                    yield from found(one.body, f"{before}{one.name}.")
                elif isinstance(one, _Function) and one.name != "__repr__":
                    yield before + one.name, one

        return found(self.tree.body, "")

    def changes(self, node: ast.AST) -> Iterator[_Change]:
        """All that can be changed in and below a node."""
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.arguments):
            return
        if isinstance(node, ast.keyword) and node.arg in _CRASHING:
            return
        if isinstance(node, _Function):
            for statement in node.body:
                yield from self.changes(statement)
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from self.changes(node.value)
            return
        yield from self._of(node)
        for part in ast.iter_child_nodes(node):
            yield from self.changes(part)

    def _of(self, node: ast.AST) -> Iterator[_Change]:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                yield from self._between(op, left, right)
            case ast.BinOp(left=left, op=op, right=right) if not (_text(left) or _text(right)):
                yield from self._between(op, left, right)
            case ast.BoolOp(op=op, values=[left, right]):
                yield from self._between(op, left, right)
            case ast.AugAssign(target=target, op=ast.Add() | ast.Sub() as op, value=value):
                if not _text(value):
                    yield from self._between(op, target, value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                begin, end = self.ends(node)
                kept = self.content[self.ends(operand)[0] : end]
                yield _Change(begin, end, kept, "not is dropped")
            case ast.Constant(value=bool(value)):
                yield _Change(*self.ends(node), str(not value).encode(), f"{not value} for {value}")
            case ast.Constant(value=int(value)):
                yield _Change(*self.ends(node), str(value + 1).encode(), f"{value + 1} for {value}")
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in _NAMES:
                end = self.ends(node)[1]
                begin = end - len(name)
                yield _Change(begin, end, _NAMES[name].encode(), f"{_NAMES[name]} for {name}")
            case ast.Expr(value=ast.Call() as call) if "super()" not in ast.unparse(call.func):
                told = f"{ast.unparse(call.func)}() is dropped"
                yield _Change(*self.ends(node), b"pass", told)

    def _between(self, op: ast.AST, left: ast.expr, right: ast.expr) -> Iterator[_Change]:
        if type(op) in _OPERATORS:
            old, new = _OPERATORS[type(op)]
            begin, end = self.ends(left)[1], self.ends(right)[0]
            written = rb"\s+".join(re.escape(word.encode()) for word in old.split())
            if found := re.compile(written).search(self.content, begin, end):
                yield _Change(*found.span(), new.encode(), f"{new} for {old}")

    def mutant(self, change: _Change, function: str, number: int) -> Mutant:
        """With as many whole lines around the change as make the old text unique."""
        first = max(at for at in self._lines if at <= change.begin)
        end = min(at for at in self._lines if at >= change.end)
        before, behind = [at for at in self._lines if at < first], self._lines
        while self.content.count(self.content[first:end]) > 1:
            first = before.pop()
            end = min((at for at in behind if at > end), default=end)
        new = self.content[first : change.begin] + change.new + self.content[change.end : end]
        words = re.findall("[A-Za-z0-9]+", f"{Path(self.name).stem} {function}")
        return Mutant(
            f"drawn-{number:02d}-{'-'.join(words).lower()}",
            self.name,
            self.content[first:end].decode(),
            new.decode(),
            f"in {function}: {change.what}",
        )


def _text(node: ast.expr) -> bool:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return is_text or isinstance(node, ast.JoinedStr | ast.List | ast.ListComp)


def drawn(seed: int, count: int) -> list[Mutant]:
    """``count`` functions of all that can be changed, and of each one change."""
    paths = sorted((ROOT / "numtok").rglob("*.py"))
    every = [
        (file, name, found)
        for file in (_File(path) for path in paths if not _LEFT_OUT.fullmatch(path.stem))
        for name, function in file.functions()
        if (found := list(file.changes(function)))
    ]
    chance = random.Random(seed)
    return [
        file.mutant(chance.choice(found), name, number)
        for number, (file, name, found) in enumerate(chance.sample(every, count), 1)
    ]
