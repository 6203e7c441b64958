"""The layers, the README's map of files, and what no file may contain.

The rules on imports are stated in CONTRIBUTING.md. The walker reads source with ``ast`` and sees
imports at the top of a file, in functions and under TYPE_CHECKING, relative ones,
``importlib.import_module`` and ``__import__``; the second half of this file shows that each
rule can fail.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "numtok"

LAYERS: tuple[frozenset[str], ...] = (  # lowest first
    frozenset(
        {
            "columns",
            "config",
            "documents",
            "errors",
            "files",
            "nupa",
            "plugins",
            "probes",
            "published",
            "quota",
            "records",
            "registry",
            "reports",
        }
    ),
    frozenset({"kernels"}),
    frozenset({"metrics", "normalizers", "numerals", "text_tokenizers"}),
    frozenset({"schemes"}),
    frozenset(
        {
            "automaton",
            "codec",
            "contract",
            "distributions",
            "fields",
            "grammar",
            "samples",
            "tables",
        }
    ),
    frozenset({"engines", "nn", "sources", "tasks"}),
    frozenset({"sklearn", "stages"}),
    frozenset({"figures", "sweeps"}),
    frozenset({"cli"}),
    frozenset({"__main__"}),
)
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
STORE = frozenset({"artifact", "draft", "provenance", "store"})
STORE_IS_USED_BY = frozenset({"__main__", "cli", "engines", "figures", "stages", "sweeps"})
STORE_USES = frozenset({"errors", "files", "plugins", "records"})
REGISTRY_FOLDERS = (
    "figures",
    "metrics",
    "nn.embedders",
    "nn.heads",
    "nn.objectives",
    "normalizers",
    "schemes",
    "sources",
    "tasks",
    "text_tokenizers",
)
COMPUTED_IMPORTS_IN = "numtok.registry"
DATA_FOLDERS = ("published", "sample")


@dataclass(frozen=True)
class Import:
    """One import: where it stands, and the module it names (None: computed at run time)."""

    line: int
    target: str | None


# --- reading imports ---------------------------------------------------------------------------


def module_name(path: Path) -> str:
    """``numtok/cli/main.py -> numtok.cli.main``; a folder's ``__init__.py`` is the folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def parsed(source: str) -> ast.Module:
    """Several rules read every file: each is parsed once."""
    return ast.parse(source)


def sources() -> dict[str, Path]:
    """Every module of numtok and its file."""
    return {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


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


def imports(source: str, module: str, known: set[str], is_folder: bool = False) -> Iterator[Import]:
    """Every import that ``source``, the text of ``module``, makes anywhere.

    ``known`` are the modules that exist: it tells ``from numtok import store`` (a module) from
    ``from numtok import __version__`` (a name in one).
    """
    package = module if is_folder else module.rpartition(".")[0]
    nodes = list(ast.walk(parsed(source)))
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


# --- the rules ---------------------------------------------------------------------------------


def _part(module: str) -> str:
    """``numtok.cli.main -> cli``; empty for numtok itself."""
    return module.partition(".")[2].partition(".")[0]


def _place(module: str) -> tuple[str, str]:
    """The registry folder a module stands in and its name there, else two empty strings."""
    inner = module.partition(".")[2]
    for folder in REGISTRY_FOLDERS:
        if inner == folder or inner.startswith(f"{folder}."):
            return folder, inner[len(folder) + 1 :].partition(".")[0]
    return "", ""


def _broken_layer(part: str, wanted: str) -> str:
    """Why ``part`` may not import ``wanted``, another part; empty if it may."""
    unknown = [name for name in (part, wanted) if name not in LEVEL.keys() | STORE]
    if unknown:
        return f"{unknown[0]} stands in no layer: say in this test where it belongs"
    if part in STORE:
        allowed = ", ".join(sorted(STORE_USES))
        return "" if wanted in STORE_USES | STORE else f"{part} imports only {allowed}"
    if wanted in STORE:
        allowed = ", ".join(sorted(STORE_IS_USED_BY))
        return "" if part in STORE_IS_USED_BY else f"only {allowed} import {wanted}"
    if LEVEL[wanted] > LEVEL[part]:
        return f"{wanted} is above {part}"
    if LEVEL[wanted] == LEVEL[part] > 0:
        return f"{wanted} is beside {part}"
    return ""


def broken_rule(module: str, target: str | None) -> str:
    """The rule that ``module`` breaks by importing ``target``, or an empty string."""
    if target is None:
        return "" if module == COMPUTED_IMPORTS_IN else "only registry computes what it imports"
    if target != "numtok" and not target.startswith("numtok."):
        return ""
    part, wanted = _part(module), _part(target)
    if not wanted:
        return ""
    if not part:
        return "numtok/__init__.py imports nothing of numtok"
    if part != wanted:
        return _broken_layer(part, wanted)
    folder, _ = _place(module)
    if folder and folder == _place(target)[0]:
        sibling = _place(target)[1]
        if sibling not in ("", "base", _place(module)[1]) and not sibling.startswith("_"):
            return f"in {folder}, siblings import only base and _private modules"
    if part == "stages" and target != module:
        stage = target.split(".")[2] if target.count(".") > 1 else ""
        if stage and not stage.startswith("_"):
            return "a stage never imports another stage"
    return ""


def breaks(source: str, module: str, known: set[str], is_folder: bool = False) -> list[str]:
    """One line for each import in ``source`` that breaks a rule."""
    return [
        f"{module}:{found.line} imports {found.target or 'a computed name'}: {why}"
        for found in imports(source, module, known, is_folder)
        if (why := broken_rule(module, found.target))
    ]


def test_imports_point_down_only() -> None:
    modules = sources()
    found = [
        line
        for module, path in modules.items()
        for line in breaks(
            path.read_text("utf-8"), module, set(modules), path.name == "__init__.py"
        )
    ]
    assert not found, "\n".join(found)


def test_only_models_and_the_stages_that_use_them_import_torch() -> None:
    modules = sources()
    found = {
        module
        for module, path in modules.items()
        for one in imports(path.read_text("utf-8"), module, set(modules))
        if one.target and one.target.partition(".")[0] in ("torch", "safetensors")
    }
    assert {module for module in found if not module.startswith("numtok.nn.")} == {
        "numtok.sklearn",
        "numtok.stages._checkpoint",
        "numtok.stages._init",
        "numtok.stages._label_evaluation",
        "numtok.stages._models",
        "numtok.stages._probed_confidence",
        "numtok.stages._regressors",
        "numtok.stages._spreads",
        "numtok.stages._table_predictions",
        "numtok.stages._trace",
        "numtok.stages.fit",
        "numtok.stages.train",
        "numtok.stages._training",
    }


def test_what_needs_no_model_loads_no_torch() -> None:
    """All in one process, where what one of them loads stays: it is told which was the first."""
    needs = {"gen": "numtok.stages.gen", "encode": "numtok.stages.encode"}
    needs |= {"compare": "numtok.stages.compare", "report": "numtok.stages._reports"}
    needs |= {"figure": "numtok.figures.lines", "ls": "numtok.store"}
    needs |= {"explain": "numtok.stages.explain"}
    program = "import sys\n" + "".join(
        f"import numtok.cli.{command}, {module}\nprint({command!r}, 'torch' in sys.modules)\n"
        for command, module in needs.items()
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.splitlines(), done.stderr) == ([f"{name} False" for name in needs], "")


def test_training_and_evaluation_need_few_libraries() -> None:
    """What a GPU machine needs: neither numba (scanning, rounding) nor polars."""
    program = """if True:
        import sys
        import numtok.stages.eval, numtok.stages.train
        from numtok.schemes.base import SCHEMES
        for name in SCHEMES:
            SCHEMES[name]
        import numtok.text_tokenizers.words
        print(sorted({"numba", "polars", "sklearn", "tokenizers"} & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_help_loads_none_of_the_heavy_libraries() -> None:
    program = """if True:
        import sys
        from numtok.cli.main import main
        sys.argv = ["numtok", "--help"]
        code = "main returned"
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        heavy = {"numba", "numpy", "polars", "pyarrow", "tokenizers", "torch"}
        print("exit", code, "loaded", sorted(heavy & set(sys.modules)))
    """
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: " in done.stdout
    assert done.stdout.splitlines()[-1] in ("exit 0 loaded []", "exit None loaded []")


# --- the map of files, and what files hold -----------------------------------------------------


def mapped_files() -> list[str]:
    """The first words of the lines in the README's fenced block after ``<!-- file map -->``."""
    readme = (ROOT / "README.md").read_text("utf-8")
    block = readme.partition("<!-- file map -->\n```text\n")[2].partition("\n```")[0]
    lines = block.splitlines()
    bare = [line for line in lines if not re.fullmatch(r"numtok/\S+  +\S.*", line)]
    assert not bare, f"not 'numtok/FILE  one phrase': {bare}"
    return [line.split()[0] for line in lines]


def expected_files() -> set[str]:
    """What the map has to list: each file, and registry and data folders as one line each."""
    folders = [f"numtok/{name.replace('.', '/')}/" for name in (*REGISTRY_FOLDERS, *DATA_FOLDERS)]
    expected: set[str] = set()
    for path in PACKAGE.rglob("*"):
        if not path.is_file() or path.name == "__init__.py" or "__pycache__" in path.parts:
            continue
        name = path.relative_to(ROOT).as_posix()
        expected.add(next((folder for folder in folders if name.startswith(folder)), name))
    return expected


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    links = [
        (page, link)
        for page in pages
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))
        if "://" not in link
    ]
    assert len(links) > 10
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []


def test_the_readme_maps_every_file() -> None:
    listed = mapped_files()
    assert len(listed) == len(set(listed)), "a file is listed twice"
    expected = expected_files()
    assert not expected - set(listed), "missing in the README's file map"
    assert not set(listed) - expected, "in the README's file map, but not in the tree"


def test_every_module_has_a_docstring() -> None:
    bare = [
        module
        for module, path in sources().items()
        if not ast.get_docstring(parsed(path.read_text("utf-8")))
    ]
    assert not bare


GENERATED = frozenset({"__pycache__", "artifacts", "build", "data", "dist"})
# Written in pieces, so that this file does not hold what it looks for.
PRIVATE = re.compile(
    r"(?<![\w.])/(?:work|root|home|opt)/" + "|" + "|".join(["py" + r"pi\.org", "pythonhos" + "ted"])
)


def test_no_file_names_a_private_path_or_a_package_host() -> None:
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            name
            for name in folders
            if name == ".ci" or not (name in GENERATED or name.startswith("."))
        ]
        for name in set(names) - {".git"}:
            text = Path(folder, name).read_bytes().decode("utf-8", "replace")
            found += [f"{folder}/{name}: {hit[0]}" for hit in PRIVATE.finditer(text)]
    assert not found


# --- the walker itself -------------------------------------------------------------------------

KNOWN = {
    *("numtok", "numtok.cli", "numtok.cli.main", "numtok.codec", "numtok.engines"),
    *("numtok.errors", "numtok.files", "numtok.kernels", "numtok.metrics", "numtok.numerals"),
    *("numtok.records", "numtok.registry", "numtok.schemes", "numtok.schemes._decimal"),
    *("numtok.schemes.base", "numtok.schemes.p10", "numtok.schemes.p1000", "numtok.stages"),
    *("numtok.stages._units", "numtok.stages.encode", "numtok.stages.gen", "numtok.store"),
}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("numtok.errors", "import numtok.store"),
        ("numtok.errors", "import os, numtok.store as keep"),
        ("numtok.errors", "from numtok import store"),
        ("numtok.errors", "from numtok import store as keep"),
        ("numtok.errors", "from numtok.store import Store"),
        ("numtok.errors", "from . import store"),
        ("numtok.errors", "from .store import Store"),
        ("numtok.schemes.p10", "from .. import store"),
        ("numtok.schemes.p10", "from ..store import Store"),
        ("numtok.errors", "def load():\n    from numtok import store"),
        ("numtok.errors", "import typing\nif typing.TYPE_CHECKING:\n    from . import store"),
        ("numtok.errors", "import importlib\nimportlib.import_module('numtok.store')"),
        ("numtok.errors", "import importlib as il\nil.import_module(name='numtok.store')"),
        ("numtok.errors", "from importlib import import_module\nimport_module('numtok.store')"),
        ("numtok.errors", "from importlib import import_module as im\nim('numtok.store')"),
        ("numtok.errors", "import importlib\nimportlib.import_module('.store', __package__)"),
        ("numtok.errors", "__import__('numtok.store')"),
        ("numtok.cli.main", "name = 'x'\n__import__(f'numtok.{name}')"),
        ("numtok.errors", "import numtok\nnumtok.store.Store()"),
    ],
)
def test_a_break_is_found_in_every_spelling(module: str, source: str) -> None:
    assert len(breaks(source, module, KNOWN)) == 1


@pytest.mark.parametrize(
    ("module", "target", "why"),
    [
        ("numtok.kernels", "numtok.codec", "codec is above kernels"),
        ("numtok.schemes.p10", "numtok.stages.encode", "stages is above schemes"),
        ("numtok.metrics.r2", "numtok.numerals", "numerals is beside metrics"),
        ("numtok.engines.local", "numtok.nn.mlp", "nn is beside engines"),
        (
            "numtok.schemes.p10",
            "numtok.store",
            "only __main__, cli, engines, figures, stages, sweeps import",
        ),
        (
            "numtok.codec",
            "numtok.artifact",
            "only __main__, cli, engines, figures, stages, sweeps import",
        ),
        ("numtok.store", "numtok.kernels", "store imports only errors, files, plugins, records"),
        (
            "numtok.artifact",
            "numtok.stages.encode",
            "artifact imports only errors, files, plugins, records",
        ),
        ("numtok.schemes.p1000", "numtok.schemes.p10", "in schemes, siblings import only"),
        ("numtok.schemes", "numtok.schemes.p10", "in schemes, siblings import only"),
        ("numtok.nn.heads.mdn", "numtok.nn.heads.token", "in nn.heads, siblings import only"),
        ("numtok.sklearn", "numtok.stages.fit", "stages is beside sklearn"),
        (
            "numtok.sklearn",
            "numtok.store",
            "only __main__, cli, engines, figures, stages, sweeps import",
        ),
        ("numtok.stages.encode", "numtok.sweeps.sweep", "sweeps is above stages"),
        ("numtok.stages.encode", "numtok.stages.gen", "a stage never imports another stage"),
        ("numtok", "numtok.errors", "numtok/__init__.py imports nothing of numtok"),
        ("numtok.utils", "numtok.errors", "utils stands in no layer"),
        ("numtok.cli.main", None, "only registry computes what it imports"),
    ],
)
def test_each_rule_can_fail(module: str, target: str | None, why: str) -> None:
    assert broken_rule(module, target).startswith(why)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("numtok.schemes.p10", "from numtok.schemes.base import Scheme\nfrom . import _decimal"),
        ("numtok.schemes.p10", "from numtok import __version__\nfrom ..errors import UsageError"),
        ("numtok.schemes.p10", "import numpy as np\nfrom numtok.numerals import scan"),
        ("numtok.stages.encode", "from . import _units\nfrom numtok import store, codec"),
        ("numtok.cli.main", "def go():\n    from numtok.stages import encode"),
        ("numtok.store", "from . import files, records\nfrom .errors import StoreError"),
        ("numtok.registry", "import importlib\nimportlib.import_module(name)"),
    ],
)
def test_allowed_imports_are_not_reported(module: str, source: str) -> None:
    assert breaks(source, module, KNOWN) == []
