"""The notebooks of docs/notebooks run, and have pages."""

import importlib.util
import os
from pathlib import Path

import pytest

from docs.site import notebooks
from tests.imports import ROOT

NOTEBOOKS = notebooks.paths()


@pytest.mark.integration
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("nbclient", "ipykernel", "transformers"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install numtok[docs]")
    import nbclient
    import nbformat

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("NUMTOK_STORE", raising=False)
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    place = {"metadata": {"path": os.fspath(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, resources=place).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert outputs and not [one for one in outputs if one["output_type"] == "error"]


def test_notebooks_have_no_outputs_and_a_page_each() -> None:
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        assert '"outputs": []' in text and '"output_type"' not in text
        page = notebooks.page(path)
        assert page.startswith("# ") and f"({path.name})" in page and "```python\n" in page
