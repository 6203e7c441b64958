"""Generates the pages on models and benchmarks, from the registries and the published tables."""

from collections import Counter
from collections.abc import Iterator

from docs.site.commands import TITLES
from docs.site.papers import fidelity, measured
from docs.site.text import first_sentence, prose, table
from numtok.cli._options import Kind
from numtok.evaluation.published import names, published
from numtok.models.presets import preset
from numtok.models.sizes import PRESETS
from numtok.plugins import registries
from numtok.registry import registry_in

_MODELS = """# Models

A model has four parts: an *embedder* turns numbers into vectors, a *trunk* processes them, a *head*
predicts numbers, and an *objective* states what is trained. [Train a
model](../how-to/train.md) combines them, and [Extend numtok](../extend/index.md) adds your own."""
_BENCHMARKS = """# Benchmarks

Data with known answers, and the tables that papers print. [Generate
data](../how-to/generate-data.md) and [Download public data](../how-to/public-data.md) describe the
data, and [Fidelity](../results/fidelity.md) compares the tables with measurements."""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page."""
    yield "models/index.md", models()
    yield "benchmarks/index.md", benchmarks()


def models() -> str:
    """Return the page of presets and of the parts of a model."""
    rows = []
    for name in PRESETS:
        one = preset(name)
        settings = one.settings()
        sizes = [settings.get(key, "") for key in ("layers", "width", "heads")]
        rows.append((f"`{name}`", *sizes, one.learning_rate))
    columns = ("preset", "layers", "width", "attention heads", "learning rate")
    parts = [
        _MODELS,
        "## Presets\n\nSizes of the transformer; `nano,layers=2` changes one. The name of a trunk "
        f"is a preset as well.\n\n{table(columns, rows)}",
    ]
    parts += [_kinds(folder) for folder in ("trunks", "embedders", "heads", "objectives")]
    return "\n\n".join(parts) + "\n"


def _kinds(folder: str) -> str:
    rows = []
    for name in registry_in(registries()[folder]):
        kind = Kind(folder, name)
        source = getattr(kind.kind, "source", "")
        rows.append((f"`{name}`", first_sentence(prose(kind.text)), source))
    columns = ("name", "description", "source")[: 3 if any(row[2] for row in rows) else 2]
    text = table(columns, [row[: len(columns)] for row in rows])
    link = f"[Settings](../reference/parts/{folder}.md)"
    return f"## {TITLES[folder]}\n\n{text}\n\n{link}"


def benchmarks() -> str:
    """Return the page of tasks, sources and published tables."""
    cells = Counter(place.table for place in measured())
    orderings = {one.table: one for one in fidelity().tables}
    rows = []
    for name in names():
        paper = published(name)
        counts = orderings[name]
        printed = sum(len(row) for row in paper.rows.values())
        rows.append(
            (f"`{name}`", paper.caption, printed, cells[name], counts.printed, counts.seeded)
        )
    columns = ("table", "content", "values", "measured", "orderings", "with several seeds")
    parts = [_BENCHMARKS, _kinds("tasks"), _kinds("sources")]
    parts.append(
        "## Published tables\n\n`numtok eval MODEL --against TABLE` compares your model with one "
        f"of these tables.\n\n{table(columns, rows)}"
    )
    return "\n\n".join(parts) + "\n"
