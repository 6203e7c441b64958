"""The layout of numtok: the rules of its layers, and what no file may contain.

docs/architecture.md states the rules. Each rule is a function of sources that returns its
violations. A test applies it to the real tree, and the second half of this file shows that it can
fail. ``tests/imports.py`` reads imports; ``tests/test_pages.py`` checks folders, their files and
pages.
"""

import ast
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.cases import case
from tests.imports import ROOT, Source, cycle, edges, parsed, tree

GROUND = (
    *("arrays", "config", "contracts", "declaration", "documents", "errors"),
    *(
        "files",
        "interrupts",
        "kernel_numba",
        "kernel_files",
        "kernel_types",
        "kernels",
        "machine",
        "names",
    ),
    *("part_class", "plugin_checks", "plugins", "registry", "reports"),
    *("row", "seeds", "setting_names", "setting_scope", "setting_values"),
    *("setting_versions", "setting_words", "stored_json", "version"),
)
#: Lowest first. Modules import from lower layers; those of the lowest layer also from each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    GROUND,
    ("settings",),
    ("store",),
    ("numerals",),
    ("data",),
    ("metrics",),
    ("encoding",),
    ("models",),
    ("training",),
    ("evaluation",),
    ("analysis",),
    ("stages",),
    ("sklearn",),
    ("sweeps",),
    ("cli",),
    ("library",),
    ("hf",),
    ("__main__",),
    ("",),  # numtok/__init__.py, with the public names: nothing in numtok imports it
)
LAYER = {part: layer for layer, parts in enumerate(LAYERS) for part in parts}
STORE = "numtok.store.store"
STORE_IN = ("cli", "library", "stages", "store", "sweeps")
TORCH = ("safetensors", "torch")
TORCH_IN = (
    *("numtok.models", "numtok.training", "numtok.evaluation", "numtok.analysis.probing"),
    *("numtok.stages", "numtok.sklearn", "numtok.library", "numtok.hf"),
)
COMPUTED_IMPORTS_IN = "numtok.registry"
ONE_A_STAGE = ("Config", "Result")
#: Registries whose files no module imports.
PARTS = ("numtok.models.embedders", "numtok.models.objectives", "numtok.models.trunks")

MOST_BY_POSITION = 5

Modules = Mapping[str, Source]


def _part(module: str) -> str:
    """Return the part directly under numtok: ``numtok.cli.main -> cli``; empty for numtok."""
    return module.partition(".")[2].partition(".")[0]


def _folder(module: str) -> str:
    return module.rpartition(".")[0]


def _name(module: str) -> str:
    return module.rpartition(".")[2]


def _is_within(module: str, folder: str) -> bool:
    return f"{module}.".startswith(f"{folder}.")


def _within_numtok(modules: Modules) -> Iterator[tuple[str, int, str]]:
    """Yield each import of another module of numtok: importer, line, imported module."""
    for module, found in edges(modules):
        if found.target and _is_within(found.target, "numtok") and found.target != module:
            yield module, found.line, found.target


# --- the rules: each returns its violations ----------------------------------------------------


def layers(modules: Modules) -> list[str]:
    """A folder imports only from layers below it, and every top-level module has a layer."""
    lost = {part for part in map(_part, modules) if part not in LAYER}
    broken = [f"{part} is in no layer: add it to LAYERS" for part in lost]
    for module, line, target in _within_numtok(modules):
        part, wanted = _part(module), _part(target)
        if part != wanted and {part, wanted} <= LAYER.keys():
            if LAYER[wanted] > LAYER[part]:
                broken.append(f"{module}:{line} imports {target}, of a layer above")
            elif LAYER[wanted] == LAYER[part] > 0:
                broken.append(f"{module}:{line} imports {target}, of the same layer")
    return broken


def no_cycle(modules: Modules) -> list[str]:
    """Modules do not import each other, directly or in a cycle."""
    group = cycle(modules)
    return [f"{', '.join(group)} import one another"] if group else []


def underscores(modules: Modules) -> list[str]:
    """Only modules of the same folder or its subfolders import a module with an underscore."""
    return [
        f"{module}:{line} imports {target}, which is of {_folder(target)} alone"
        for module, line, target in _within_numtok(modules)
        if _name(target).startswith("_") and not _is_within(module, _folder(target))
    ]


def registry_folders(modules: Modules) -> set[str]:
    """Return the registry folders: those whose ``base`` creates a registry."""
    return {
        _folder(module)
        for module, source in modules.items()
        if _name(module) == "base"
        and any(
            isinstance(node, ast.Call) and ast.unparse(node.func).partition("[")[0] == "Registry"
            for node in ast.walk(parsed(source.text))
        )
    }


def _is_part(module: str) -> bool:
    """Return whether a file of a registry is a name in it."""
    return _name(module) != "base" and not _name(module).startswith("_")


def siblings(modules: Modules) -> list[str]:
    """A part in a registry imports no other part of it."""
    folders = registry_folders(modules)
    return [
        f"{module}:{line} imports {target}; siblings import only base and underscores"
        for module, line, target in _within_numtok(modules)
        for folder in {module, _folder(module)} & folders
        if _folder(target) == folder and _is_part(target)
    ]


def store(modules: Modules) -> list[str]:
    """Only code that makes artifacts uses ``Store``; the rest takes an artifact, draft or path."""
    return [
        f"{module}:{line} imports {target}; only {', '.join(STORE_IN)} do"
        for module, line, target in _within_numtok(modules)
        if target == STORE and _part(module) not in STORE_IN
    ]


def torch(modules: Modules) -> list[str]:
    """Only models and the code that runs them import torch and safetensors."""
    return [
        f"{module}:{found.line} imports {found.target}; only {', '.join(TORCH_IN)} do"
        for module, found in edges(modules)
        if (found.target or "").partition(".")[0] in TORCH
        and not any(_is_within(module, place) for place in TORCH_IN)
    ]


def stages(modules: Modules) -> list[str]:
    """Stages communicate only through files on disk."""
    return [
        f"{module}:{line} imports {target}, another stage"
        for module, line, target in _within_numtok(modules)
        if _folder(module) == _folder(target) == "numtok.stages"
    ]


def computed(modules: Modules) -> list[str]:
    """Imported names are literal, except in the look-up by name."""
    return [
        f"{module}:{found.line} imports a computed name; only {COMPUTED_IMPORTS_IN} does"
        for module, found in edges(modules)
        if found.target is None and module != COMPUTED_IMPORTS_IN
    ]


def classes(modules: Modules) -> list[str]:
    """Class names are unique in the package."""
    places = defaultdict(list)
    for module, source in modules.items():
        for node in ast.walk(parsed(source.text)):
            if isinstance(node, ast.ClassDef) and node.name not in ONE_A_STAGE:
                places[node.name].append(module)
    return [
        f"{name} is a class of {', '.join(found)}"
        for name, found in places.items()
        if len(found) > 1
    ]


def part_imports(modules: Modules) -> list[str]:
    """Embedders, objectives and trunks are found by name: no module imports one."""
    return [
        f"{module}:{line} imports {target}; build it by its name"
        for module, line, target in _within_numtok(modules)
        if _folder(target) in PARTS and _folder(target) != module and _is_part(target)
    ]


def many_arguments(modules: Modules) -> list[str]:
    """No call has more than five positional arguments: no checker notices if two are swapped.

    Kernels are exempt, because they are compiled for the types of their arguments, in order.
    """
    trees = {module: ast.parse(source.text) for module, source in modules.items()}
    functions = {
        module: [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for module, tree in trees.items()
    }
    kernels = {node.name for nodes in functions.values() for node in nodes if _is_kernel(node)}
    signatures = {
        id(inner)
        for nodes in functions.values()
        for node in filter(_is_kernel, nodes)
        for decorator in node.decorator_list
        for inner in ast.walk(decorator)
    }
    return [
        f"{module}:{node.lineno} gives {called} {len(node.args)} arguments by position; name them"
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and len(node.args) > MOST_BY_POSITION
        if (called := ast.unparse(node.func)).rpartition(".")[2] not in kernels
        if id(node) not in signatures
    ]


def _is_kernel(node: ast.FunctionDef) -> bool:
    """Return whether a function is compiled, or inlined into a compiled one."""
    decorators = (ast.unparse(one).partition("(")[0] for one in node.decorator_list)
    return any(name in ("kernel", "inlined", "helper") for name in decorators)


RULES = (
    *(layers, no_cycle, underscores, siblings, store, torch, stages, computed, classes),
    *(part_imports, many_arguments),
)


@pytest.mark.integration
def test_the_tree_keeps_the_rules() -> None:
    broken = [f"{rule.__name__}: {told}" for rule in RULES for told in rule(tree())]
    assert not broken, "\n".join(broken)


def test_the_folders_that_are_registries_are_found() -> None:
    found = {_name(folder) for folder in registry_folders(tree())}
    assert {"embedders", "figures", "heads", "metrics", "schemes", "tasks"} <= found
    assert "distributions" not in found


# --- loaded modules ----------------------------------------------------------------------------


DATA = ("gen", "encode")


def printed(program: str) -> str:
    """Return what a program prints in its own process, which must not fail or warn."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.integration
def test_what_needs_no_model_loads_no_torch_and_what_makes_data_no_special_functions(
    tmp_path: Path,
) -> None:
    """All commands are imported in one process, so the first wrong line shows the culprit.

    numba loads scipy, but not its special functions. PyArrow loads pandas for some of its
    functions, which encode does not use.
    """
    needs = {
        **{"gen": "numtok.stages.gen", "encode": "numtok.stages.encode"},
        **{"fetch": "numtok.stages.fetch", "table": "numtok.stages.table"},
        **{"compare": "numtok.stages.compare", "report": "numtok.evaluation.report_files"},
        **{"figure": "numtok.stages.figure, numtok.analysis.figures.lines"},
        **{"diagnose": "numtok.stages.errors", "score": "numtok.stages.score, numtok.stages.nupa"},
        **{"explain": "numtok.stages.explain", "profile": "numtok.stages.profile"},
        **{"ls": "numtok.store.store"},
    }
    program = "import sys\n" + "".join(
        f"import numtok.cli.{command}, {module}\nprint({command!r}, 'torch' in sys.modules)\n"
        + "print('scipy.special' in sys.modules)\n" * (command in DATA)
        for command, module in needs.items()
    )
    sample = str(ROOT / "numtok/data/sample/era5-uk.jsonl")
    program += f"""if True:
        import pathlib
        numtok.stages.encode.run(
            numtok.stages.encode.Config(({sample!r},), scheme="xval"),
            numtok.store.store.Store(pathlib.Path({str(tmp_path)!r})),
            lambda *_: None,
        )
        print("pandas", "pandas" in sys.modules)
    """
    told = "".join(f"{name} False\n" + "False\n" * (name in DATA) for name in needs)
    told += "pandas False\n"
    assert printed(program) == told


@pytest.mark.integration
def test_training_and_evaluation_need_few_libraries() -> None:
    """A GPU machine needs neither numba (scanning, rounding) nor polars.

    PyTorch's compiler is not loaded before the first step is done.
    """
    program = """if True:
        import sys
        import numtok.stages.eval, numtok.stages.train
        from numtok.encoding.schemes.base import SCHEMES
        for name in SCHEMES:
            SCHEMES[name]
        import numtok.encoding.text_tokenizers.words
        import torch
        from numtok.models.meta import without_memory
        from numtok.training.adamw import AdamW, Group
        with without_memory():
            torch.nn.Embedding(2, 2), torch.nn.Linear(2, 2), torch.empty(2).normal_()
            2.0 ** torch.arange(2), torch.linspace(0, 1, 2)
        layer = torch.nn.Linear(2, 2)
        layer(torch.ones(1, 2)).sum().backward()
        AdamW([Group([*layer.parameters()], 0.1)]).step(0.1)
        heavy = {"numba", "polars", "sklearn", "tokenizers", "torch._dynamo"}
        print(sorted(heavy & set(sys.modules)))
    """
    assert printed(program) == "[]\n"


@pytest.mark.integration
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
        heavy = {"numba", "numpy", "polars", "pyarrow", "scipy", "tokenizers", "torch"}
        print("exit", code, "loaded", sorted(heavy & set(sys.modules)))
    """
    told = printed(program)
    assert "Usage: " in told
    assert told.splitlines()[-1] in ("exit 0 loaded []", "exit None loaded []")


@pytest.mark.integration
def test_short_commands_load_only_what_they_need(tmp_path: Path) -> None:
    rows = (f'{{"id": "{k}", "text": "{k} and {k / 4}"}}\n' for k in range(60))
    (tmp_path / "rows.jsonl").write_text("".join(rows))
    avoided = {
        "explain -1.5": {"filelock", "pyarrow"},
        "encode --scheme xval rows.jsonl": {"numpy.ma", "pandas", "pyarrow.compute"},
        "train rows-xval --preset nano,layers=1,width=16,heads=2 --device cpu --steps 1": {
            *("pandas", "scipy.special", "torch._dynamo")
        },
    }
    program = f"""if True:
        import os, sys
        from numtok.cli.main import main
        os.chdir({str(tmp_path)!r})
        for command, avoided in {avoided!r}.items():
            sys.argv = ["numtok", "--quiet", *command.split()]
            try:
                main()
            except SystemExit as stop:
                print("exit", stop.code, "loaded", sorted(avoided & set(sys.modules)))
    """
    told = [line for line in printed(program).splitlines() if line.startswith("exit")]
    assert told == ["exit 0 loaded []"] * len(avoided)


# --- forbidden contents of files ----------------------------------------------------------------


GENERATED = frozenset({"__pycache__", "artifacts", "build", "data", "dist"})
# Split, so that this file does not contain what it searches for.
PRIVATE = re.compile(
    r"(?<![\w.])/(?:work|root|home|opt)/" + "|" + "|".join(["py" + r"pi\.org", "pythonhos" + "ted"])
)


@pytest.mark.integration
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


# --- each rule can fail ------------------------------------------------------------------------


def made_up(**texts: str) -> dict[str, Source]:
    """Return modules by their names without ``numtok.``, with ``__`` for dots.

    A module with another below it is a folder. Missing parent folders are added.
    """
    modules = {f"numtok.{name.replace('__', '.')}": text for name, text in texts.items()}
    for module in list(modules):
        while module := _folder(module):
            modules.setdefault(module, "")
    return {
        module: Source(text, any(_folder(other) == module for other in modules))
        for module, text in modules.items()
    }


def broken_by(rule: Callable[[Modules], list[str]], **texts: str) -> str:
    return "\n".join(rule(made_up(**texts)))


def test_an_import_upward_is_found_in_every_spelling() -> None:
    for text in [
        "import numtok.store",
        "import os, numtok.store as keep",
        "from numtok import store",
        "from numtok import store as keep",
        "from numtok.store import Store",
        "from . import store",
        "from .store import Store",
        "def load():\n    from numtok import store",
        "import typing\nif typing.TYPE_CHECKING:\n    from . import store",
        "import importlib\nimportlib.import_module('numtok.store')",
        "import importlib as il\nil.import_module(name='numtok.store')",
        "from importlib import import_module\nimport_module('numtok.store')",
        "from importlib import import_module as im\nim('numtok.store')",
        "import importlib\nimportlib.import_module('.store', __package__)",
        "__import__('numtok.store')",
    ]:
        with case(text):
            told = "numtok.errors:{} imports numtok.store, of a layer above"
            line = 1 + text.count("\n")
            assert broken_by(layers, errors=text, store="") == told.format(line)


def test_an_import_upward_is_found_from_a_subfolder() -> None:
    for text in [
        "from .. import store",
        "from ..store import Store",
        "import numtok\nnumtok.store.x()",
    ]:
        assert "of a layer above" in broken_by(layers, store="", numerals="", errors__x=text), text


def test_imports_point_down_only() -> None:
    texts = {"models__model": "import numtok.training.loop", "training__loop": ""}
    assert "training.loop, of a layer above" in broken_by(layers, **texts)
    assert "sweeps, of a layer above" in broken_by(
        layers, sklearn="from . import sweeps", sweeps=""
    )
    assert "numtok, of a layer above" in broken_by(layers, cli__ls="from numtok import load")
    assert "utils is in no layer" in broken_by(layers, utils="")
    assert broken_by(layers, errors="from numtok import files", files="") == ""
    assert broken_by(layers, training__loop="import numtok.models", models="") == ""


def test_a_layer_at_the_same_level_is_not_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LAYER, "metrics", LAYER["data"])
    assert "metrics, of the same layer" in broken_by(
        layers, data="import numtok.metrics", metrics=""
    )


def test_a_cycle_is_found_whatever_its_length_and_wherever_its_imports_stand() -> None:
    ring = {
        "store__a": "from numtok.store import b",
        "store__b": "def late():\n    import numtok.store.c",
        "store__c": "import typing\nif typing.TYPE_CHECKING:\n    from .a import A",
        "store__d": "from numtok.store import a",
    }
    told = "numtok.store.a, numtok.store.b, numtok.store.c import one another"
    assert broken_by(no_cycle, **ring) == told
    ring["store__c"] = "from importlib import import_module\nimport_module('numtok.store.a')"
    assert broken_by(no_cycle, **ring) == told
    assert broken_by(no_cycle, **(ring | {"store__c": ""})) == ""
    folder = {"store": "from numtok.store.a import A", "store__a": "from numtok import store"}
    assert broken_by(no_cycle, **folder) == "numtok.store, numtok.store.a import one another"


def test_a_module_with_an_underscore_is_not_imported_from_elsewhere() -> None:
    inside = {"models__heads__x": "from numtok.models import _y", "models___y": ""}
    assert broken_by(underscores, **inside) == ""
    outside = {"models__x": "from numtok.models.heads import _y", "models__heads___y": ""}
    assert "_y, which is of numtok.models.heads alone" in broken_by(underscores, **outside)


REGISTRY = "METRICS = Registry[Metric]('numtok.metrics', 'metric')"


def test_a_name_of_a_registry_imports_no_other() -> None:
    for module in ["metrics__r2", "metrics___weighted", "metrics"]:
        with case(module):
            texts = {"metrics__base": REGISTRY, "metrics__mae": "", "metrics___mean": ""}
            wrong = broken_by(siblings, **(texts | {module: "from numtok.metrics import mae"}))
            if module == "metrics___weighted":
                assert "siblings import only base" in wrong
            assert "imports numtok.metrics.mae; siblings import only base" in wrong
            right = "from numtok.metrics import base, _mean"
            assert broken_by(siblings, **(texts | {module: right})) == ""
            texts["metrics__base"] = "class Metric: ..."
            assert broken_by(siblings, **(texts | {module: "import numtok.metrics.mae"})) == ""


def test_the_store_is_not_imported_by_what_is_given_an_artifact() -> None:
    text = "def run():\n    from numtok.store.store import Store"
    told = broken_by(store, store__store="", models__model=text)
    assert told == (
        "numtok.models.model:2 imports numtok.store.store; "
        "only cli, library, stages, store, sweeps do"
    )
    assert broken_by(store, store__store="", stages__eval=text, sweeps__runs=text) == ""


def test_torch_is_not_imported_below_or_above_models() -> None:
    for text in ["import torch", "from torch import nn", "import safetensors.torch"]:
        with case(text):
            assert "; only numtok.models" in broken_by(
                torch, encoding__codec=f"def run():\n    {text}"
            )
            assert "; only numtok.models" in broken_by(torch, analysis__profiling__x=text)
            assert (
                broken_by(torch, analysis__probing__x=text, models__heads__x=text, sklearn=text)
                == ""
            )


def test_a_stage_imports_no_other() -> None:
    texts = {"stages__train": "", "stages__eval": "from numtok.stages import train"}
    assert "numtok.stages.train, another stage" in broken_by(stages, **texts)


def test_only_the_registry_computes_what_it_imports() -> None:
    for text in ["__import__(f'numtok.{name}')", "importlib.import_module(name)"]:
        with case(text):
            assert "imports a computed name" in broken_by(computed, cli__main=text)
            assert broken_by(computed, registry=text) == ""


def test_a_class_name_stands_for_one_class() -> None:
    texts = {"models__a": "class Fit: ...", "models__b": "def f():\n    class Fit: ..."}
    assert broken_by(classes, **texts) == "Fit is a class of numtok.models.a, numtok.models.b"
    config = "class Config: ..."
    assert broken_by(classes, stages__eval=config, stages__train=config) == ""


def test_a_part_that_is_imported_is_found() -> None:
    texts = {"models__trunks__deep": "", "models__trunks__base": "", "models__model": ""}
    text = "def f():\n    from numtok.models.trunks.deep import Deep"
    told = "numtok.training.x:2 imports numtok.models.trunks.deep; build it by its name"
    assert broken_by(part_imports, **texts, training__x=text) == told
    assert broken_by(part_imports, **texts, training__x=text.replace("deep", "base")) == ""


def test_a_call_with_many_positional_arguments_is_found() -> None:
    kernel = "@kernel(int64(a, b, c, d, e, f))\ndef add(a, b, c, d, e, f): ..."
    texts = {"numerals__add": kernel, "data__x": "add(1, 2, 3, 4, 5, 6)\nf(1, 2, 3, 4, 5, g=6)"}
    assert broken_by(many_arguments, **texts) == ""
    told = broken_by(many_arguments, **texts, models__x="\nTrained(1, 2, 3, 4, 5, 6)")
    assert told == "numtok.models.x:2 gives Trained 6 arguments by position; name them"
