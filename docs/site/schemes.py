"""Generates the gallery of schemes and one page per scheme."""

from collections.abc import Iterator

from docs.site.results import standings
from docs.site.text import chips, prose, table
from numtok.cli._options import COLUMNS, Kind
from numtok.cli.output.schemes import (
    EXAMPLE,
    IDEAS,
    explained,
    idea_of,
    paper_of,
    precision_of,
    range_of,
    what_model_sees,
)
from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.schemes.base import SCHEMES, Scheme, needs_sample

NUMBERS = (EXAMPLE, "0.00123", "1234567.89", "0")
_GALLERY = """# Schemes

A scheme writes a number as tokens. The chips show -60.2. Each page has four numbers, what the
model sees, facts, settings, results and commands. `numtok schemes` prints this list, and
[Which encoding for what](../get-started/which-encoding.md) helps you choose.
"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page."""
    names = [name for name in SCHEMES if not SCHEMES.required(name)]
    yield "schemes/index.md", _gallery(names)
    for name in names:
        yield f"schemes/{name}.md", page(name)


def _gallery(names: list[str]) -> str:
    parts = [_GALLERY]
    for idea in IDEAS:
        rows = []
        for name in names:
            scheme = scheme_of(name)
            if idea_of(scheme) == idea:
                (written,), _ = explained(EXAMPLE, [name])
                rows.append(
                    (
                        f"[`{name}`]({name}.md)",
                        chips(written.tokens),
                        _count(scheme),
                        range_of(scheme),
                        precision_of(scheme),
                        paper_of(scheme.source),
                    )
                )
        if rows:
            columns = ("scheme", EXAMPLE, "tokens", "range", "precision", "paper")
            parts.append(f"## {idea.capitalize()}\n\n{table(columns, rows)}")
    return "\n\n".join(parts) + "\n"


def page(name: str) -> str:
    """Return the page of a scheme."""
    scheme, kind = scheme_of(name), Kind("schemes", name)
    lead, _, details = prose(kind.text).partition("\n\n")
    embedder, head = scheme.parts
    extras = len(scheme.vocabulary()) - scheme.paper_vocabulary_size
    size = "from data" if needs_sample(scheme) else f"{scheme.paper_vocabulary_size:,}"
    facts = [
        ("idea", idea_of(scheme)),
        ("tokens per number", _count(scheme)),
        ("vocabulary", f"{size} + {extras} for NaN, infinities and numbers out of range"),
        ("range", range_of(scheme)),
        ("precision", precision_of(scheme)),
        ("default embedder", f"[`{embedder}`](../reference/parts/embedders.md)"),
        ("default head", f"[`{head}`](../reference/parts/heads.md)"),
        ("default normalization", f"`{scheme.defaults.normalizer}`"),
        ("source", scheme.source),
    ]
    parts = [f"# {name}", lead, f"## Four numbers\n\n{_numbers(name, scheme)}"]
    parts.append(f"## Facts\n\n{table(('fact', 'value'), facts)}")
    if details:
        parts.append(f"## How it works\n\n{details}")
    if settings := list(kind.rows()):
        rows = [(f"`{written}`", default or "", *rest) for written, default, *rest in settings]
        parts.append(f"## Settings\n\n{table(COLUMNS, rows)}")
    parts.append(f"## Good at, bad at\n\n{standings(name)}")
    parts.append(
        f"## Use it\n\n```sh\nnumtok schemes {name}\nnumtok explain {EXAMPLE} --scheme {name}\n"
        f"numtok encode --scheme {name} DATA\nnumtok check scheme {name}\n```"
    )
    return "\n\n".join(parts) + "\n"


def _numbers(name: str, scheme: Scheme) -> str:
    rows = []
    for number in NUMBERS:
        (written,), stated = explained(number, [name])
        sees = what_model_sees(scheme, written) or "the tokens"
        note = f" (range {stated})" if stated else ""
        rows.append((f"`{number}`", chips(written.tokens), sees, f"`{written.decoded}`{note}"))
    return table(("number", "tokens", "the model sees", "reads back"), rows)


def _count(scheme: Scheme) -> str:
    return "varies" if scheme.tokens_per_number is None else str(scheme.tokens_per_number)
