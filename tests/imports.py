"""Which module imports which, read from the source with ``ast``.

Imports count anywhere: at the top of a file, in functions and under TYPE_CHECKING. They count in
every spelling: relative ones, ``importlib.import_module``, ``__import__``, and ``numtok.store.x``
after ``import numtok``.
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
    """One import: its line, and the module that it names (None: computed at run time)."""

    line: int
    target: str | None


@dataclass(frozen=True)
class Source:
    """The text of one module; for a folder, that of its ``__init__.py``."""

    text: str
    is_folder: bool = False


def module_name(path: Path) -> str:
    """Return ``numtok.cli.main`` for ``numtok/cli/main.py``; ``__init__.py`` means its folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree() -> Mapping[str, Source]:
    """Return every module of numtok."""
    return {
        module_name(path): Source(path.read_text("utf-8"), path.name == "__init__.py")
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def parsed(text: str) -> ast.Module:
    """Return the syntax tree, parsed once for all rules."""
    return ast.parse(text)


def edges(modules: Mapping[str, Source]) -> Iterator[tuple[str, Import]]:
    """Return every import of every module, with the importing module."""
    return iter(_edges_of_the_tree()) if modules is tree() else _edges(modules)


@cache
def _edges_of_the_tree() -> list[tuple[str, Import]]:
    return list(_edges(tree()))


def _edges(modules: Mapping[str, Source]) -> Iterator[tuple[str, Import]]:
    for module, source in modules.items():
        for found in imports(module, source, modules):
            yield module, found


def imports(module: str, source: Source, known: Mapping[str, Source]) -> Iterator[Import]:
    """Yield every import in a module.

    ``known`` are the existing modules. They distinguish ``from numtok import store`` (a module)
    from ``from numtok import __version__`` (a name in one).
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
    """Return the absolute name of ``name`` with ``level`` leading dots, as seen from
    ``package``."""
    if level == 0:
        return name
    base = package.split(".")[: len(package.split(".")) - level + 1]
    return ".".join([*base, name] if name else base)


def _dotted(node: ast.expr) -> str:
    """Return ``numtok.store.open`` for such a chain of attributes, else an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (head := _dotted(node.value)):
        return f"{head}.{node.attr}"
    return ""


def _called_import(call: ast.Call, importers: set[str], package: str) -> Import | None:
    """Return the import of a call to ``import_module`` or ``__import__``, else None."""
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
    """Return one sorted group of modules that import one another, or an empty list."""
    targets: dict[str, list[str]] = {module: [] for module in modules}
    for module, found in edges(modules):
        if found.target and found.target in modules and found.target != module:
            targets[module].append(found.target)
    try:
        TopologicalSorter(targets).prepare()
    except CycleError as error:
        return sorted(set(error.args[1]))
    return []
