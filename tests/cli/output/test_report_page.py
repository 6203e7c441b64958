"""``numtok report --html``: what its page holds, and what a browser makes of it."""

import json
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from numtok.cli.output.pages import write
from numtok.cli.output.pages.page import HeldRow, Page, RowList, Section
from numtok.cli.output.pages.report import report_page
from numtok.cli.output.pages.write import check_page, html
from numtok.errors import UsageError
from numtok.evaluation.report_files import read
from numtok.store.store import Store
from tests.fakereports import Fake, make

EVIL = "</script><img src=http://example.com/x onerror=alert(1)>"


def without_scripts(made: str) -> str:
    return re.sub(r"<script>.*?</script>", "", made, flags=re.S)


def page_of(root: Path, fake: Fake) -> Page:
    store = Store(root / "artifacts")
    return report_page(read(make(store, fake)), store.resolve)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> str:
    fake = Fake("xval", noise=15, invalid=3, later=True)
    return html(page_of(tmp_path_factory.mktemp("page"), fake))


def test_a_page_loads_nothing(made: str) -> None:
    document = unescape(without_scripts(made))
    assert not re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(?:https?:|//)""", document)
    assert "default-src 'none'" in document


def test_the_same_report_gives_the_same_page(made: str, tmp_path: Path) -> None:
    assert html(page_of(tmp_path, Fake("xval", noise=15, invalid=3, later=True))) == made


def test_a_hundred_thousand_predictions_are_a_small_page(tmp_path: Path) -> None:
    page = page_of(tmp_path, Fake("xval", noise=15, later=True, count=100_000))
    [held] = [
        part for section in page.sections for part in section.parts if isinstance(part, RowList)
    ]
    assert len(held.rows) == 2000
    assert "2,000 of 100,000 predictions" in held.text
    assert len(html(page).encode()) < 3_000_000


def test_text_of_rows_is_text(tmp_path: Path) -> None:
    row = HeldRow(["slot"], EVIL, "1", EVIL, ["slot:a"])
    rows = RowList("rows", "", ["slot", "text"], [row])
    made = html(Page("kicker", EVIL, EVIL, [], [Section("rows", "Rows", "", [rows])]))
    assert "<img" not in without_scripts(made)
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', made, re.S)
    assert found is not None
    assert json.loads(found[1])["rows"][0]["before"] == EVIL


def test_what_is_missing_is_said_before_any_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        check_page(tmp_path / "no" / "page.html")
    monkeypatch.setattr(write, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="needs Jinja2 and altair and vl-convert-python"):
        check_page(tmp_path / "page.html")


# --- in a browser ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed (Debian: chromium-driver)")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1240,4000"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.mark.slow
def test_in_a_browser(browser: Any, made: str, tmp_path: Path) -> None:
    from axe_core_python.selenium import Axe
    from selenium.webdriver.support.ui import WebDriverWait

    path = tmp_path / "page.html"
    path.write_text(made)
    browser.get(path.as_uri())
    drawn = "return document.querySelectorAll('[data-drawn]').length"
    WebDriverWait(browser, 30).until(lambda _: browser.execute_script(drawn) == 5)
    sent = [
        message["params"]["request"]["url"]
        for entry in browser.get_log("performance")
        if (message := json.loads(entry["message"])["message"])["method"]
        == "Network.requestWillBeSent"
    ]
    assert [url for url in sent if not url.startswith(("file:", "data:"))] == []

    def marks(chart: str, kind: str) -> int:
        asked = f"return document.querySelectorAll('#{chart} .mark-{kind}.role-mark path').length"
        return int(browser.execute_script(asked))

    assert marks("truth", "symbol") == 197  # three of 200 are no numbers
    assert marks("part-0", "symbol") == 3
    assert marks("pit", "rect") == 20

    click = "new MouseEvent('click', {bubbles: true})"
    dot = "document.querySelector('#size .mark-symbol.role-mark path')"
    browser.execute_script(f"{dot}.dispatchEvent({click})")
    count = browser.find_element("css selector", ".count").text
    assert re.fullmatch(r"\d+ of (?!200)\d+ rows that belong to what is chosen", count), count

    serious = [
        (one["id"], [node["html"][:120] for node in one["nodes"]][:3])
        for one in Axe().run(browser)["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
