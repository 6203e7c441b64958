"""Folders and pages describe the tree: every file is named where a reader looks for it."""

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from docs.site import build
from numtok.declaration import settings_in
from numtok.plugins import registries
from numtok.registry import registry_in
from tests.imports import PACKAGE, ROOT, Source, parsed, tree
from tests.test_architecture import registry_folders

_LINE = re.compile(r"^([\w.]+(?:\.py|/))  +\S", re.M)


def content(folder: str, modules: Mapping[str, Source]) -> set[str]:
    """Return the files and packages directly in a folder: ``{"model.py", "heads/"}``."""
    inside = {module for module in modules if module.rpartition(".")[0] == folder}
    return {
        f"{module.rpartition('.')[2]}{'/' if modules[module].is_folder else '.py'}"
        for module in inside
    }


def unnamed(modules: Mapping[str, Source]) -> list[str]:
    """Return files that folder docstrings omit, name twice, or name although they do not exist.

    Registry folders are exempt: each file in them is a name. Folders of data may be named.
    """
    found = []
    names = registry_folders(modules)
    for folder, source in modules.items():
        if not source.is_folder or folder in names:
            continue
        listed = _LINE.findall(ast.get_docstring(parsed(source.text)) or "")
        there = content(folder, modules)
        found += [f"{folder} does not name {name}" for name in sorted(there - set(listed))]
        gone = set(listed) - there - _data_folders(folder)
        found += [f"{folder} names {name}, which is not there" for name in sorted(gone)]
        twice = {name for name in listed if listed.count(name) > 1}
        found += [f"{folder} names {name} twice" for name in sorted(twice)]
    return found


def _data_folders(folder: str) -> set[str]:
    place = PACKAGE.joinpath(*folder.split(".")[1:])
    return {f"{path.name}/" for path in place.glob("*/") if not (path / "__init__.py").exists()}


def mapped(page: str) -> list[str]:
    """Return the folders on the map of a page: the fenced block that begins with ``numtok/``."""
    block = page.partition("```text\nnumtok/\n")[2].partition("\n```")[0]
    return re.findall(r"^  (\w+/)  +\S", block, re.M)


def top_level(modules: Mapping[str, Source]) -> list[str]:
    return sorted(name for name in content("numtok", modules) if name.endswith("/"))


def files_named(page: str) -> set[str]:
    """Return the files of the tree in backticks, such as ``models/heads/base.py``.

    Plugins and files that the page itself contains after a mark are left out.
    """
    own = set(re.findall(r"^<!-- \w+: (\S+) -->$", page, re.M))
    named = set(re.findall(r"`(?:numtok/)?((?:\w+/)+\w+\.(?:py|toml|jsonl|sh))`", page))
    return {name for name in named - own if not name.startswith("plugins/")}


def test_every_folder_names_its_files() -> None:
    assert not unnamed(tree())


def test_the_architecture_page_maps_the_folders() -> None:
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    assert sorted(mapped(page)) == top_level(tree())


def written_pages() -> list[Path]:
    """Return the hand-written pages, except for the log, which keeps its original wording."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    return [page for page in pages if page.parent != ROOT / "docs/log"]


@cache
def generated_pages() -> frozenset[Path]:
    return frozenset(ROOT / "docs" / name for name, _ in build.generated())


def test_links_between_pages_lead_somewhere() -> None:
    links = [
        (page, (page.parent / link).resolve())
        for page in written_pages()
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))
        if "://" not in link
    ]
    assert len(links) > 100
    gone = [
        f"{page.name}: {link}"
        for page, link in links
        if not link.exists() and link not in generated_pages()
    ]
    assert not gone


def test_files_that_pages_name_are_there() -> None:
    gone = [
        f"{page.name}: {name}"
        for page in written_pages()
        for name in sorted(files_named(page.read_text("utf-8")))
        if not ((ROOT / name).exists() or (PACKAGE / name).exists())
    ]
    assert not gone


# --- each can fail -----------------------------------------------------------------------------


def test_a_file_that_no_docstring_names_is_found() -> None:
    text = '''"""Models.

    heads/    how a number comes out
    model.py  embedder, trunk and heads
    gone.py   what was there before
    model.py  once more
    """'''
    modules = {
        "numtok.x": Source(text.replace("\n    ", "\n"), is_folder=True),
        "numtok.x.model": Source(""),
        "numtok.x.trunk": Source(""),
        "numtok.x.heads": Source("", is_folder=True),
        "numtok.x.heads.base": Source("HEADS = Registry('numtok.x.heads', 'head')"),
        "numtok.x.heads.mdn": Source(""),
    }
    assert unnamed(modules) == [
        "numtok.x does not name trunk.py",
        "numtok.x names gone.py, which is not there",
        "numtok.x names model.py twice",
    ]


def test_the_map_of_a_page_is_read() -> None:
    page = "```text\nnumtok/\n  cli/     one file a command\n  store/   artifacts\n```\n  x/  no\n"
    assert mapped(page) == ["cli/", "store/"]
    assert top_level(tree()) != mapped(page)


def test_a_file_that_a_page_names_is_found() -> None:
    page = "`numtok/a/b.py`, `c/d.py`, `plugins/heads/x.py`, `e.py`\n<!-- plugin: c/d.py -->\n"
    assert files_named(page) == {"a/b.py"}


def test_every_setting_has_a_line_of_help() -> None:
    kinds = [(name, registry_in(package)) for name, package in registries().items()]
    silent = [
        f"{folder}/{name}: {setting}"
        for folder, registry in kinds
        for name in registry
        for setting, one in settings_in(registry[name]).items()
        if not one.help
    ]
    assert not silent
