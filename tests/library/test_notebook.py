"""Objects in a notebook, as a browser displays them."""

from pathlib import Path
from typing import Any

import pytest
import torch

import numtok
from numtok.store.store import Store
from tests import browser as browsers
from tests.cases import case
from tests.fakereports import Fake, make

browser = browsers.browser
pytestmark = pytest.mark.integration

TEXTS = ["2.5 + 13 = 15.5", "7 times -8 is -56"]
SHOWN = """
return [...document.querySelectorAll("section")].map(one => [
    one.id,
    [...one.querySelectorAll("table")].map(table => table.rows.length),
    [...one.querySelectorAll("tr")].filter(row => !row.offsetHeight).length,
    one.innerText,
])
"""


def objects(folder: Path) -> dict[str, Any]:
    """Return one object of each kind with an HTML form."""
    store = Store(folder)
    odd = make(store, Fake("<script>document.title = 'run'</script>", count=40), name="odd")
    plain = make(store, Fake("xval", count=40))
    (folder / "rows.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in TEXTS * 40))
    codec = numtok.Codec.fit(TEXTS, scheme="xval")
    head = numtok.head("mdn:3", codec, width=8)
    return {
        "report": numtok.load(odd.ref, store=folder),
        "comparison": numtok.compare(odd.ref, plain.ref, metrics=["mae"], store=folder),
        "profile": numtok.profile(folder / "rows.jsonl", schemes=["xval", "p10"], store=folder),
        "explanation": numtok.explain("-60.2", schemes=["p1000", "xval", "fone"]),
        "predictions": head.predict(torch.zeros(12, 8)),
    }


def test_objects_show_their_tables(browser: Any, tmp_path: Path) -> None:
    made = objects(tmp_path)
    parts = [f'<section id="{name}">{one._repr_html_()}</section>' for name, one in made.items()]
    page = tmp_path / "cells.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><title>cells</title>{''.join(parts)}")
    browser.get(page.as_uri())
    assert browser.title == "cells"  # text is not executed
    assert browsers.severe(browser) == []
    said = {"report": "r2", "comparison": "mae", "profile": "p10", "explanation": "602"}
    shown = browser.execute_script(SHOWN)
    assert [name for name, *_ in shown] == list(made)
    for name, rows, hidden, text in shown:
        with case(name):
            assert rows and min(rows) > 1 and hidden == 0
            assert said.get(name, "95%") in text
            assert "<td>" not in text and "&lt;" not in text
