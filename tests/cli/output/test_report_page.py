"""``numtok report --html``: the contents of its page."""

import json
import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from numtok.analysis.picture import Axis, BarMarks, Panel
from numtok.cli.output.figures import Formatted
from numtok.cli.output.pages import write
from numtok.cli.output.pages.page import HeldRow, Page, PageCell, PageChart, RowList, Section
from numtok.cli.output.pages.write import check_page, draw, html
from numtok.errors import UsageError
from numtok.metrics.base import Predictions
from numtok.reports import Figure
from tests.cases import case, check_examples
from tests.fakepages import EVIL, of_report, rows
from tests.fakereports import Fake


def without_scripts(made: str) -> str:
    return re.sub(r"<script>.*?</script>", "", made, flags=re.S)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> str:
    fake = Fake("xval", noise=15, invalid=3, later=True)
    return html(of_report(tmp_path_factory.mktemp("page"), fake))


def test_the_examples_are_right() -> None:
    check_examples("cli.output.figures", "cli.output.printing", "cli.output.report", Figure=Figure)
    pages = (f"cli.output.pages.{name}" for name in ("differences", "parts", "write"))
    check_examples(*pages, Predictions=Predictions, Formatted=Formatted)


def test_a_page_loads_nothing(made: str) -> None:
    document = unescape(without_scripts(made))
    assert not re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(?:https?:|//)""", document)
    assert "default-src 'none'" in document


def test_the_same_report_gives_the_same_page(made: str, tmp_path: Path) -> None:
    assert html(of_report(tmp_path, Fake("xval", noise=15, invalid=3, later=True))) == made


@pytest.mark.slow
def test_a_hundred_thousand_predictions_are_a_small_page(tmp_path: Path) -> None:
    page = of_report(tmp_path, Fake("xval", noise=15, later=True, count=100_000))
    held = rows(page)
    assert len(held.rows) == 2000
    assert "2,000 of 100,000 predictions" in held.text
    assert len(html(page).encode()) < 3_000_000


def test_what_may_overflow_has_an_interval_without_end(tmp_path: Path) -> None:
    page = of_report(tmp_path, Fake(overflow=3))
    ends = [row.cells[3] for row in rows(page).rows]
    assert sum(isinstance(one, PageCell) and one.text.endswith("to \u221e") for one in ends) == 3
    assert "\u221e" in html(page)


def test_a_headline_is_of_the_metric_that_its_words_say(tmp_path: Path) -> None:
    fake = Fake(metrics=("relative-error-over", "relative-error-over,limit=0.5"))
    named = [one.name for one in of_report(tmp_path, fake).headlines]
    assert named == ["relative-error-over", "invalid"]


def test_text_of_rows_is_text(tmp_path: Path) -> None:
    row = HeldRow([PageCell(EVIL, aside=EVIL)], EVIL, "1", EVIL, ["field:a"])
    held = RowList(caption="rows", text="", columns=["field", "text"], rows=[row])
    made = html(
        Page(
            kicker="kicker",
            title=EVIL,
            lead=EVIL,
            headlines=[],
            sections=[Section("rows", "Rows", "", [held])],
        )
    )
    assert "<img" not in without_scripts(made)
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', made, re.S)
    assert found is not None
    assert json.loads(found[1])["rows"][0]["before"] == EVIL


def test_what_is_missing_is_said_before_any_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        check_page(tmp_path / "no" / "page.html")
    monkeypatch.setattr(write, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="needs Jinja2 and vl-convert-python"):
        check_page(tmp_path / "page.html")


def test_names_with_characters_that_xml_cannot_hold_are_drawn_with_escapes() -> None:
    for char, shown in (("\x01", r"\x01"), ("\x1b", r"\x1b"), ("\uffff", r"\uffff"), ("é", "é")):
        with case(char=char):
            names = (f"x{char}", "y")
            bars = BarMarks.of(f"of {char}", [(0, 1, 1, 1), (1, 1, 1, 1)], 0, names)
            y_axis = Axis(label=f"group {char}", names=names)
            panel = Panel(title=f"by {char}", x=Axis(label="error"), y=y_axis, marks=[bars])
            still = draw(PageChart(name="chart", heading="", text="", panel=panel)).still
            assert f"x{shown}" in "".join(ElementTree.fromstring(still).itertext())
