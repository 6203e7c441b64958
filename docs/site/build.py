"""Collects hand-written and generated pages in build/docs, then runs mkdocs on them."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from docs.site import commands, notebooks, overviews, papers, python, results, schemes

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Pages and folders of docs that are part of the site; the log, for example, is not.
CONTENT = (
    *("index.md", "architecture.md", "get-started", "how-to", "extend", "results", "reference"),
    *("TESTS.md", "RELIABILITY.md", "SECURITY.md", "LICENSES.md", "notebooks", "images"),
)


def generated() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each generated page."""
    for module in (schemes, overviews, results, commands, python, notebooks):
        yield from module.pages()
    yield "releases.md", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def collect(folder: Path) -> None:
    """Write all pages of the site, and mkdocs.yml with its navigation filled in, to a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    pages.mkdir(parents=True)
    for name in CONTENT:
        source = DOCS / name
        if source.is_dir():
            shutil.copytree(source, pages / name)
        elif source.exists():
            shutil.copy(source, pages / name)
    shutil.copytree(DOCS / "site/assets", pages / "assets")
    for path in (pages / "results").glob("*.md"):
        path.write_text(papers.filled(path.read_text(encoding="utf-8")), encoding="utf-8")
    for name, text in generated():
        path = pages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    config = yaml.safe_load((DOCS / "mkdocs.yml").read_text(encoding="utf-8"))
    config["docs_dir"] = "pages"
    config["nav"] = _filled(config["nav"], pages)
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")


def _filled(entries: list[Any], pages: Path) -> list[Any]:
    """Replace each pattern of the navigation, such as ``schemes/*.md``, by the pages it matches."""
    filled: list[Any] = []
    for entry in entries:
        if isinstance(entry, str) and "*" in entry:
            found = sorted(path.relative_to(pages).as_posix() for path in pages.glob(entry))
            filled += [page for page in found if not page.endswith("/index.md")]
        elif isinstance(entry, dict):
            [(title, below)] = entry.items()
            filled.append({title: _filled(below, pages) if isinstance(below, list) else below})
        else:
            filled.append(entry)
    return filled


def build(folder: Path) -> int:
    """Build the site in ``folder``/site and return the exit code of mkdocs. Warnings are errors."""
    collect(folder / "docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean"]
    config, site = str(folder / "docs/mkdocs.yml"), str((folder / "site").resolve())
    done = subprocess.run([*command, "--config-file", config, "--site-dir", site], check=False)
    return done.returncode
