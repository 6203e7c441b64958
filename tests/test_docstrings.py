"""Every public item has or inherits a docstring that says more than its name.

Public items are modules, and the classes, functions, methods and properties without an underscore,
even in modules with one. A method inherits the docstring of the numtok method that it overrides.
Fields are described where they are declared. Nested functions and ``__dunder__`` methods are
described by the code around them. An entry in the docstring of the class may describe a property,
as it does a field.

An item that takes or returns a tensor or an array names its axes. They are in brackets
(``float64[n, k]``), perhaps in the docstring of its class or module; or in all names
(``hidden_ND``); or in words ("of each row").
"""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pytest

from tests.imports import Source, parsed, tree

Modules = Mapping[str, Source]
Function = ast.FunctionDef | ast.AsyncFunctionDef

FILLERS = "a an it its of return the this"
ARRAY = re.compile(r"\b(?:Tensor|NDArray|Floats|Ints|Bools)\b")
STATE = re.compile(r"\b(?:dict|Mapping)\[str, Tensor\]")  # tensors by name, each with its own shape
# Excludes marks, such as ``[NUM]``, and lists of numbers, such as ``[0, 1]``.
_AXES = r"\[(?![A-Z]{3,}\])[A-Za-z][\w +*-]*(?:, [\w +*.-]+)*\]|(?<![\w.])\[\]"
BRACKET = re.compile(rf"\b(?:float|int|uint|bool)\d*\[[^\]]*\]|{_AXES}")
IN_WORDS = re.compile(r"\b(?:each|every|per|scalars?|any shape)\b")
IN_NAME = re.compile(r"\w_[A-Z]{1,4}")


@dataclass(frozen=True)
class Item:
    """A module, class, function or method, with its docstring and others that may describe it."""

    place: str  # ``numtok.models.model:48``
    name: str  # ``Model.hidden``
    own: str
    inherited: tuple[str, ...] = ()  # of the methods that it overrides, nearest first
    around: tuple[str, ...] = ()  # of classes and modules around it and the overridden methods
    arrays: tuple[str, ...] = ()  # array parameters, and "" if it returns an array


@dataclass(frozen=True)
class Class:
    """A class of numtok, public or not, with its docstring and that of its module."""

    module: str
    node: ast.ClassDef
    around: tuple[str, ...]


def items(modules: Modules) -> Iterator[Item]:
    """Yield all public items, module by module."""
    classes: dict[str, list[Class]] = defaultdict(list)
    for module, source in modules.items():
        about = _docstring(parsed(source.text))
        for node in _defined(parsed(source.text)):
            if isinstance(node, ast.ClassDef):
                found = Class(module, node, (_docstring(node), about))
                classes[node.name].append(found)
    for module, source in modules.items():
        about = _docstring(parsed(source.text))
        yield Item(f"{module}:1", module, about)
        for node in _defined(parsed(source.text)):
            if not node.name.startswith("_"):
                yield from _with_members(module, node, "", (about,), classes)


def _with_members(
    module: str,
    node: Function | ast.ClassDef,
    within: str,
    around: tuple[str, ...],
    classes: Mapping[str, list[Class]],
) -> Iterator[Item]:
    """Yield a function or a class, and the public members of a class."""
    place, name, own = f"{module}:{node.lineno}", within + node.name, _docstring(node)
    if not isinstance(node, ast.ClassDef):
        yield Item(place, name, own, (), around, _arrays(node))
        return
    yield Item(place, name, own)
    bases = list(_bases(module, node, classes))
    for member in _defined(node):
        if member.name.startswith("_"):
            continue
        overrides = [
            (base, theirs)
            for base in bases
            for theirs in _defined(base.node)
            if theirs.name == member.name
        ]
        owners = (own, *(_docstring(base.node) for base in bases))
        inherited = (
            *(_docstring(theirs) for _, theirs in overrides),
            *(_entry(member.name, text) for text in owners),
        )
        more = tuple(text for base, _ in overrides for text in base.around)
        for item in _with_members(module, member, f"{name}.", (own, *around, *more), classes):
            is_it = item.name == f"{name}.{member.name}"
            yield replace(item, inherited=inherited) if is_it else item


def _defined(node: ast.Module | ast.ClassDef) -> Iterator[Function | ast.ClassDef]:
    """Yield the functions and classes in the body, each once; of properties only the getter."""
    for one in node.body:
        if isinstance(one, Function | ast.ClassDef):
            marks = {ast.unparse(mark).rpartition(".")[2] for mark in one.decorator_list}
            if not marks & {"overload", "setter", "deleter"} and not _is_setting(one):
                yield one


def _is_setting(node: Function | ast.ClassDef) -> bool:
    """Return whether it only declares a setting, which has a line of help."""
    last = node.body[-1]
    made = isinstance(last, ast.Return) and last.value
    return isinstance(made, ast.Call) and ast.unparse(made.func).endswith("setting")


def _bases(module: str, node: ast.ClassDef, classes: Mapping[str, list[Class]]) -> Iterator[Class]:
    """Yield the base classes of a class that are in numtok, and their bases, nearest first.

    A class name is unique in the package; the few exceptions are of the class's own module.
    """
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
        found = [one for one in classes.get(name, []) if one.node is not node]
        for one in found if len(found) == 1 else [one for one in found if one.module == module]:
            yield one
            yield from _bases(one.module, one.node, classes)


def _docstring(node: ast.Module | Function | ast.ClassDef) -> str:
    return ast.get_docstring(node) or ""


def _entry(name: str, docstring: str) -> str:
    """Return the indented text below a name, or below a list with it, in a class docstring."""
    return "".join(re.findall(rf"^(?:\w+, )*{name}(?:, \w+)*\n((?: {{4}}.*\n?)+)", docstring, re.M))


def _arrays(node: Function) -> tuple[str, ...]:
    given = node.args
    every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    noted = [(one.arg, one.annotation) for one in every if one] + [("", node.returns)]
    return tuple(name for name, note in noted if note and _is_array(note))


def _is_array(note: ast.expr) -> bool:
    return bool(ARRAY.search(STATE.sub("", ast.unparse(note))))


def _words(text: str) -> set[str]:
    """Return the word stems of a name or text: ``rowBatches_of -> row, batch, of``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower()
    return {re.sub(r"(?<=\w{3})e?s?$", "", word) for word in re.findall(r"[^\W_]+", spaced)}


def _says_more(name: str, docstring: str) -> bool:
    return bool(_words(docstring) - _words(f"{name} {FILLERS}"))


# --- the rules: each returns its violations ----------------------------------------------------


def documented(modules: Modules) -> list[str]:
    """Every public item has a docstring that adds something to its name, or inherits one."""
    return [
        f"{item.place} {item.name}"
        for item in items(modules)
        if not any(_says_more(item.name, text) for text in (item.own, *item.inherited))
    ]


def axes_named(modules: Modules) -> list[str]:
    """Every item that takes or returns an array names its axes."""
    return [
        f"{item.place} {item.name}({', '.join(filter(None, item.arrays))})"
        for item in items(modules)
        if item.arrays and not _names_axes(item)
    ]


def _names_axes(item: Item) -> bool:
    said = "\n".join([item.own, *item.inherited])
    return (
        all(map(IN_NAME.search, item.arrays))
        or bool(IN_WORDS.search(said))
        or bool(BRACKET.search("\n".join([said, *item.around])))
    )


@pytest.mark.parametrize("rule", [documented, axes_named], ids=lambda rule: rule.__name__)
def test_the_docstrings_of_the_tree_keep_the_rule(rule: Callable[[Modules], list[str]]) -> None:
    broken = rule(tree())
    assert not broken, "\n".join(broken)


# --- each rule can fail ------------------------------------------------------------------------


BASE = '''"""What others derive from."""
class _Kind:
    """Of a file.

    first, last
        Ends of it.
    """
    def read(self): ...
class Kind(_Kind, Generic[T]):
    """Of a table.

    width
        In columns.
    """
    def read(self):
        """Up to ``size`` bytes."""
    def size(self, values: Floats) -> Floats:
        """float64[n]: in bytes."""
'''


def broken_by(rule: Callable[[Modules], list[str]], text: str, module: str = "x") -> str:
    """Return the violations of a rule in a module, given another one with ``Kind``."""
    return "\n".join(rule({f"numtok.{module}": Source(text), "numtok.base": Source(BASE)}))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("", "numtok.x"),
        ('"""``numtok x``."""', "numtok.x"),
        ('"""Of files."""\nclass RowBatch: ...', "RowBatch"),
        ('"""Of files."""\nclass RowBatch:\n    """The row batches."""', "RowBatch"),
        ('"""Of files."""\nasync def read(): ...', "read"),
        ('"""Of files."""\ndef read():\n    """Returns the read."""', "read"),
        ('"""Of files."""\nclass Row:\n    """Of a file."""\n    def n(self): ...', "Row.n"),
        (
            '"""Of files."""\nclass Row:\n    """Of a file."""\n    @property\n'
            '    def text(self):\n        """The text of this row."""',
            "Row.text",
        ),
        (
            '"""Of files."""\nclass Row:\n    """Of a file."""\n    class Cell:\n'
            '        """Of one column."""\n        def read(self): ...',
            "Row.Cell.read",
        ),
    ],
)
def test_a_public_item_without_a_docstring_is_found(module: str, name: str) -> None:
    for file in ("x", "_x"):
        found = broken_by(documented, module, file).splitlines()
        assert [line.partition(" ")[2].replace("._", ".") for line in found] == [name]


@pytest.mark.parametrize(
    "text",
    [
        "def _read(): ...",
        "class _Row:\n    def read(self): ...",
        "def read():\n    '''Up to 10.'''\n    def inner(): ...\n    return inner",
        "def width():\n    help = 'In columns.'\n    return setting(1, help)",
        "class Row:\n    '''Of a file.'''\n    size: int\n    def __len__(self): ...",
        "class Row(base.Kind[int]):\n    '''Of a file.'''\n    def read(self): ...",
        "class Row(Kind):\n    '''Of a file.'''\n    def last(self): ...\n    def width(self): ...",
        "class Row:\n    '''Of a file.'''\n    @overload\n    def read(self, n: int): ...\n"
        "    def read(self, n):\n        '''Up to n.'''",
    ],
)
def test_what_is_private_or_inherits_a_docstring_needs_none(text: str) -> None:
    assert broken_by(documented, f'"""Of files."""\n{text}') == ""


SIZES = '"""Of files."""\ndef sizes({}) -> {}:\n    """{}"""'


@pytest.mark.parametrize(
    ("given", "answer", "docstring"),
    [
        ("values: NDArray[np.float64]", "None", "In bytes."),
        ("n: int", "Tensor | None", "In bytes, as [NUM] says, [0, 1]."),
        ("*parts: 'torch.Tensor'", "int", "In bytes."),
        ("x_BL: Tensor", "Tensor", "In bytes."),
        ("n: int", "tuple[Ints, dict[str, Tensor]]", "In bytes."),
    ],
)
def test_an_array_whose_axes_have_no_name_is_found(given: str, answer: str, docstring: str) -> None:
    assert "x:2 sizes(" in broken_by(axes_named, SIZES.format(given, answer, docstring))
    for said in ("float64[n]: in bytes.", "[B, L]: in bytes.", "In bytes, of each row."):
        assert broken_by(axes_named, SIZES.format(given, answer, said)) == ""


@pytest.mark.parametrize(
    "text",
    [
        "def size(x_BL: Tensor, n: int) -> int: ...",
        "def load(weights: Mapping[str, Tensor]) -> None: ...",
        "class Row(Kind):\n    def size(self, values: Floats) -> Floats: ...",
        "class Row:\n    '''Of a file, [k].'''\n    def take(self, rows: Ints) -> None: ...",
        "class _Row:\n    def take(self, rows: Ints) -> None: ...",
    ],
)
def test_axes_may_be_named_by_a_parameter_a_class_or_what_is_overridden(text: str) -> None:
    assert broken_by(axes_named, f'"""Of files."""\n{text}') == ""
