"""Generates the pages of the Python API, which mkdocstrings fills from docstrings."""

from collections.abc import Iterable, Iterator

import numtok
from docs.site.text import first_sentence, table

#: Public names that are classes or helpers; all others are commands as functions.
_PARTS = (
    *("Codec", "batch", "embedder", "head", "check_visibility", "number_loss"),
    *("TextRegressor", "load", "read_answer", "score_answers"),
)
#: Objects of submodules, by the page that shows them.
_MODULES = {
    "hf": ("numtok.hf.NumberCollator", "numtok.hf.NumberModel", "numtok.hf.NumberLogitsProcessor"),
    "sklearn": ("numtok.sklearn.NumericRegressor",),
    "predictive": ("numtok.models.distributions.predictive.Predictive",),
    "errors": ("numtok.errors",),
}
_TITLES = {
    "hf": "Transformers: numtok.hf",
    "sklearn": "scikit-learn: numtok.sklearn",
    "predictive": "Predictive distributions",
    "errors": "Errors: numtok.errors",
}
_INDEX = """# Python API

`import numtok` has all public names. [Put numbers into your own
model](../../how-to/python-model.md) and [Run commands from
Python](../../how-to/python-commands.md) show how to use them."""


def public_names() -> list[str]:
    """Return the public names of the package."""
    return [name for name in dir(numtok) if not name.startswith("_")]


def _entry(name: str) -> str:
    """Return the directive that mkdocstrings replaces with the documentation of a public name."""
    path = f"numtok.library.{numtok._PUBLIC[name].replace(':', '.')}"
    options = f"      heading: numtok.{name}\n      toc_label: {name}"
    return f"::: {path}\n    options:\n{options}"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page."""
    rows = [
        (f"[`numtok.{name}`]({_page_of(name)}.md)", first_sentence(getattr(numtok, name).__doc__))
        for name in public_names()
    ]
    more = [(f"[{title}]({page}.md)", "") for page, title in _TITLES.items()]
    yield "reference/python/index.md", f"{_INDEX}\n\n{table(('name', 'purpose'), rows + more)}\n"
    commands = [name for name in public_names() if name not in _PARTS]
    yield "reference/python/commands.md", _page("Commands as functions", map(_entry, commands))
    yield "reference/python/library.md", _page("Library", map(_entry, _PARTS))
    for page, paths in _MODULES.items():
        yield f"reference/python/{page}.md", _page(_TITLES[page], (f"::: {path}" for path in paths))


def _page_of(name: str) -> str:
    return "library" if name in _PARTS else "commands"


def _page(title: str, entries: Iterable[str]) -> str:
    return "\n\n".join([f"# {title}", *entries]) + "\n"
