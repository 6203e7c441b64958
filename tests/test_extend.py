"""docs/extend and docs/architecture.md: each example works, each walk goes down the layers.

A code block after ``<!-- file: plugins/heads/median.py -->`` is a plugin. One
after ``<!-- command: cli/numbers.py -->`` is a file of numtok. ``tests/test_plugins.py`` follows
docs/extend/scheme.md step by step.
"""

import hashlib
import importlib
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from docs.site.console import blocks
from numtok import cli, settings, stages
from numtok.data.tasks.base import TASKS, TaskSplit
from numtok.plugin_checks import check_spec, kinds
from numtok.plugins import ENCODINGS, add_plugin_folders, is_plugin, registries
from numtok.registry import Registry, settings_of
from tests.imports import ROOT, Source, edges, tree
from tests.shell import Shell
from tests.stages import test_train
from tests.test_architecture import LAYER

one_thread = test_train.one_thread

PAGES = [page.read_text("utf-8") for page in sorted((ROOT / "docs/extend").glob("*.md"))]
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text("utf-8")
#: Every folder of parts except schemes, whose page has its own steps.
KINDS = {package.rpartition(".")[2] for package in kinds().values()} - {"schemes"}


def files(mark: str, folder: str = "") -> dict[str, str]:
    """Return the marked Python blocks on the pages, by their file in ``folder``."""
    found = [
        (block.value.removeprefix(folder), block.text)
        for page in PAGES
        for block in blocks(page)
        if block.mark == mark and block.language == "python" and block.value.startswith(folder)
    ]
    assert len(found) == len(dict(found))
    return dict(found)


COMMAND = files("command")
PLUGINS = files("file", "plugins/")
PLUGINS.pop("schemes/rns.py")


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def registry(kind: str) -> Registry[Any]:
    """Return the registry of a package: ``heads -> HEADS``."""
    module = importlib.import_module(f"{registries()[kind]}.base")
    found: Registry[Any] = getattr(module, kind.upper())
    return found


def check(kind: str, name: str) -> None:
    """Check that a registry finds a part and builds it from a spec."""
    options = ",from=numbers.txt" if kind == "sources" else ""
    part = registry(kind).build(name + options)
    assert kind == "figures" or settings_of(part)["name"] == name


# --- the examples ------------------------------------------------------------------------------


def test_there_is_an_example_of_each_kind() -> None:
    folders = [name.partition("/")[0] for name in PLUGINS]
    assert sorted(folders) == sorted([ENCODINGS, *KINDS])
    assert sorted(COMMAND) == ["cli/numbers.py", "settings/numbers.py", "stages/numbers.py"]


@pytest.mark.parametrize("file", PLUGINS)
def test_an_example_is_found_by_its_name(plugins: Path, file: str) -> None:
    write(plugins, {file: PLUGINS[file]})
    add_plugin_folders([plugins])
    folder, _, name = file.removesuffix(".py").partition("/")
    for kind in ("embedders", "heads") if folder == ENCODINGS else (folder,):
        assert registry(kind).plugins() == (name,)
        check(kind, name)
        suite = check_spec(kind.removesuffix("s").replace("_", "-"), name)
        assert [one.message for one in suite if not one.passed] == []


def test_a_file_of_several_parts_is_found_by_those_that_it_defines(plugins: Path) -> None:
    write(plugins, {"encodings/rns.py": PLUGINS["encodings/rns.py"], "encodings/_shared.py": ""})
    add_plugin_folders([plugins])
    assert [kind for kind in sorted(KINDS) if registry(kind).plugins()] == ["embedders", "heads"]
    assert registry("schemes").plugins() == ()
    head, embedder = registry("heads").build("rns"), registry("embedders").build("rns")
    assert (settings_of(head)["name"], settings_of(embedder)["name"]) == ("rns", "rns")
    assert is_plugin(head) and is_plugin(embedder)


@pytest.mark.parametrize(
    ("right", "wrong"), [("[715, 364, 924]", "[716, 364, 924]"), ("% 1001 - 500", "% 1001")]
)
def test_remainders_that_are_put_together_wrongly_are_found(
    plugins: Path, right: str, wrong: str
) -> None:
    source = PLUGINS["encodings/rns.py"]
    assert right in source
    write(plugins, {"heads/rns.py": source.replace(right, wrong)})
    add_plugin_folders([plugins])
    broken = {one.name: one.message for one in check_spec("head", "rns") if not one.passed}
    assert [*broken] == ["read back"]
    assert "at minimal losses, it predicts " in broken["read back"]


def test_the_head_of_residues_is_short() -> None:
    head, _, _ = PLUGINS["encodings/rns.py"].partition("\n\n\n@dataclass(frozen=True)\nclass RnsE")
    assert len([line for line in head.splitlines() if line]) <= 40


@pytest.mark.integration
def test_the_examples_work_together(tmp_path: Path, plugins: Path, numtok: Shell) -> None:
    write(plugins, PLUGINS)
    (tmp_path / "numtok.toml").write_text('[plugins]\nfolders = ["plugins"]\n')
    (tmp_path / "lab.txt").write_text("".join(f"{x} {x * x}\n" for x in range(40)))

    def made(*command: str) -> str:
        """Return what a command prints."""
        ran = numtok("-q", *command)
        assert ran.code == 0, ran.err
        return ran.out.strip()

    data = made("gen", "halves", "--rows", "300")
    specs = ("--normalize", "asinh", "--text-tokenizer", "units")
    encoded = made("encode", "--scheme", "xval", *specs, data)
    small = ("--preset", "conv,layers=1,width=16", "--batch", "32", "--steps", "2")
    parts = ("--embedder", "logsign", "--head", "median", "--objective", "single")
    model = made("train", encoded, *small, *parts)
    report = made("eval", model, encoded, "--metric", "bias").splitlines()[-1]
    made("figure", "pit", report, "--out", "pit.svg")
    assert "<svg" in (tmp_path / "pit.svg").read_text()
    assert "-norms@" in made("probe", "norms", model, "--most", "1")
    table = made("fetch", "columns", "--from", "lab.txt")
    made("eval", made("train", table, "--head", "median", "--epochs", "2"))


def test_the_task_of_the_page_has_the_digest_that_it_states(plugins: Path) -> None:
    write(plugins, PLUGINS)
    add_plugin_folders([plugins])
    task: Any = TASKS.build("halves")
    rows = task.unit(0, TaskSplit("train", 100), 0).rows
    assert rows.count(b"\n") == 100
    assert hashlib.sha256(rows).hexdigest()[:16] == task.digest
    halves = [task.unit(0, TaskSplit(name, 50_000, *ends), 0).rows for name, *ends in SPLITS]
    assert not set(halves[0].splitlines()) & set(halves[1].splitlines())


SPLITS = (("train", 0, 1 << 59), ("test", 1 << 59, 1 << 60))


@pytest.mark.integration
def test_the_command_of_the_page_is_a_command(
    tmp_path: Path, numtok: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "more", COMMAND)
    for package, folder in ((cli, "cli"), (settings, "settings"), (stages, "stages")):
        places = [*package.__path__, str(tmp_path / "more" / folder)]
        monkeypatch.setattr(package, "__path__", places)
        monkeypatch.delitem(sys.modules, f"numtok.{folder}.numbers", raising=False)
    (tmp_path / "data.jsonl").write_text('{"text": "from -60.2 to 0"}\n{"text": "1"}\n')
    encoded = numtok("-q", "encode", "--scheme", "p10", "data.jsonl").out.strip()
    ran = numtok("numbers", encoded, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert '{"split": "train", "rows": 2, "numbers": 3}' in ran.out
    for folder in ("cli", "settings", "stages"):
        monkeypatch.delitem(sys.modules, f"numtok.{folder}.numbers", raising=False)


@pytest.mark.integration
def test_the_examples_are_in_the_house_style(tmp_path: Path) -> None:
    write(tmp_path / "tests/plugins", PLUGINS | COMMAND)
    for command in (["format", "--check"], ["check"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--no-cache"]
        done = subprocess.run(
            [*ruff, "--config", str(ROOT / "pyproject.toml"), "tests"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert str(len(PLUGINS | COMMAND)) in done.stdout or command == ["check"]


# --- the walks ---------------------------------------------------------------------------------


def walk(page: str, name: str) -> list[str]:
    """Return the modules of a walk, in order."""
    part = page.partition(f"<!-- walk: {name} -->\n")[2].partition("\n\n")[0]
    return [
        f"numtok.{file.replace('/', '.')}" for file in re.findall(r"^\d+\. `(.+?)\.py`", part, re.M)
    ]


def missteps(stations: list[str], modules: Mapping[str, Source]) -> list[str]:
    """Return the errors of a walk: stations that do not exist, are above the one before, or are
    imported by none before."""
    wrong = [f"{one} does not exist" for one in stations if one not in modules]
    layers = [LAYER[one.split(".")[1]] for one in stations]
    imported = {(module, found.target) for module, found in edges(modules)}
    for place in range(1, len(stations)):
        here, before = stations[place], stations[:place]
        if layers[place] > layers[place - 1]:
            wrong.append(f"{here} is above {stations[place - 1]}")
        if not any((one, here) in imported for one in before):
            wrong.append(f"{here} is imported by none before it")
    return wrong


@pytest.mark.integration
def test_a_walk_goes_down_the_layers() -> None:
    for name in ("encode", "train", "eval"):
        stations = walk(ARCHITECTURE, name)
        assert 8 <= len(stations) <= 12, name
        assert missteps(stations, tree()) == [], name


def test_a_walk_that_goes_up_or_nowhere_is_found() -> None:
    files = ("stages/x", "data/x", "models/x", "data/y")
    lines = [f"{place}. `{file}.py` does." for place, file in enumerate(files, 1)]
    page = "\n".join(["<!-- walk: x -->", *lines, "\n"])
    modules = {
        "numtok.stages.x": Source("from numtok.data import x\nfrom numtok.models import x"),
        "numtok.data.x": Source(""),
        "numtok.models.x": Source(""),
    }
    assert missteps(walk(page, "x"), modules) == [
        "numtok.data.y does not exist",
        "numtok.models.x is above numtok.data.x",
        "numtok.data.y is imported by none before it",
    ]
