"""Generates a page per notebook in docs/notebooks: its text and code, with a link to the file."""

import json
from collections.abc import Iterator
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def paths() -> list[Path]:
    """Return the paths of all notebooks."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page."""
    for path in paths():
        yield f"notebooks/{path.stem}.md", page(path)


def page(path: Path) -> str:
    """Return a notebook as Markdown. The file is linked below the title."""
    first, *cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    title, _, intro = "".join(first["source"]).partition("\n\n")
    parts = [title, f"[Download this notebook]({path.name})", intro]
    for cell in cells:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join(parts) + "\n"
