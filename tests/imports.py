"""Which module imports which, read from the source with ``ast``.

Imports count wherever they stand, at the top of a file, in functions and under TYPE_CHECKING, and
in every spelling: relative ones, ``importlib.import_module``, ``__import__``, and
``numtok.store.x`` behind ``import numtok``.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "numtok"


@dataclass(frozen=True)
class Import:
    """One import: where it stands, and the module it names (None: computed at run time)."""

    line: int
    target: str | None


@dataclass(frozen=True)
class Source:
    """The text of one module; of a folder it is that of its ``__init__.py``."""

    text: str
    is_folder: bool = False


def module_name(path: Path) -> str:
    """``numtok/cli/main.py -> numtok.cli.main``; a folder's ``__init__.py`` is the folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree() -> Mapping[str, Source]:
    """Every module of numtok."""
    return {
        module_name(path): Source(path.read_text("utf-8"), path.name == "__init__.py")
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def parsed(text: str) -> ast.Module:
    """Several rules read every file: each is parsed once."""
    return ast.parse(text)


def edges(modules: Mapping[str, Source]) -> Iterator[tuple[str, Import]]:
    """Every import of every module, with the module that makes it."""
    return iter(_edges_of_the_tree()) if modules is tree() else _edges(modules)


@cache
def _edges_of_the_tree() -> list[tuple[str, Import]]:
    return list(_edges(tree()))


def _edges(modules: Mapping[str, Source]) -> Iterator[tuple[str, Import]]:
    for module, source in modules.items():
        for found in imports(module, source, modules):
            yield module, found


def imports(module: str, source: Source, known: Mapping[str, Source]) -> Iterator[Import]:
    """Every import that a module makes anywhere.

    ``known`` are the modules that exist: they tell ``from numtok import store`` (a module) from
    ``from numtok import __version__`` (a name in one).
    """
    package = module if source.is_folder else module.rpartition(".")[0]
    nodes = list(ast.walk(parsed(source.text)))
    importers = {"__import__"}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "importlib":
            importers |= {a.asname or a.name for a in node.names if a.name == "import_module"}
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node.module or "", node.level, package)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield Import(node.lineno, full if full in known else base)
        elif isinstance(node, ast.Call):
            if found := _called_import(node, importers, package):
                yield found
        elif isinstance(node, ast.Attribute) and (name := _dotted(node)) in known:
            yield Import(node.lineno, name)


def _absolute(name: str, level: int, package: str) -> str:
    """The absolute name of ``name`` with ``level`` leading dots, seen from ``package``."""
    if level == 0:
        return name
    base = package.split(".")[: len(package.split(".")) - level + 1]
    return ".".join([*base, name] if name else base)


def _dotted(node: ast.expr) -> str:
    """``numtok.store.open`` for such a chain of attributes, else an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (head := _dotted(node.value)):
        return f"{head}.{node.attr}"
    return ""


def _called_import(call: ast.Call, importers: set[str], package: str) -> Import | None:
    """The import that a call makes, if it is ``import_module`` or ``__import__``."""
    name = _dotted(call.func)
    if name not in importers and not name.endswith(".import_module"):
        return None
    given = [*call.args, *(word.value for word in call.keywords if word.arg == "name")][:1]
    if not given or not isinstance(given[0], ast.Constant) or not isinstance(given[0].value, str):
        return Import(call.lineno, None)
    text = given[0].value
    bare = text.lstrip(".")
    return Import(call.lineno, _absolute(bare, len(text) - len(bare), package))


def cycle(modules: Mapping[str, Source]) -> list[str]:
    """Modules that import one another, sorted; one such group, if there are several."""
    targets: dict[str, list[str]] = {module: [] for module in modules}
    for module, found in edges(modules):
        if found.target and found.target in modules and found.target != module:
            targets[module].append(found.target)
    try:
        TopologicalSorter(targets).prepare()
    except CycleError as error:
        return sorted(set(error.args[1]))
    return []
