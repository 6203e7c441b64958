"""Pages in a browser: one session for all of them, without a network."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from numtok.cli.output.pages.write import html
from tests import browser as browsers
from tests.cases import case
from tests.fakepages import charts, of_comparison, of_profile, of_race, of_report, of_sweep
from tests.fakereports import Fake

browser = browsers.browser
# The driver may return before the page listens, so each poll requests all charts again.
DRAWN = """window.dispatchEvent(new Event('beforeprint'));
return document.querySelectorAll('[data-drawn]').length"""
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
DESKTOP = {"width": 1240, "height": 4000, "deviceScaleFactor": 1, "mobile": False}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, int]]:
    """Return the file of each command's page, and its number of charts."""
    root = tmp_path_factory.mktemp("pages")
    made = {
        "report": of_report(root / "r", Fake("xval", noise=15, invalid=3, later=True)),
        "compare": of_comparison(root / "c"),
        "sweep": of_sweep(root / "s"),
        "race": of_race(root / "w"),
        "profile": of_profile(root / "p", schemes=("p10", "p1000", "xval")),
    }
    for name, page in made.items():
        (root / f"{name}.html").write_text(html(page))
    return {name: (root / f"{name}.html", len(charts(page))) for name, page in made.items()}


Opened = Callable[[str], Any]


@pytest.fixture
def opened(browser: Any, pages: dict[str, tuple[Path, int]]) -> Iterator[Opened]:
    """Provide a function that opens a page at desktop width, with all its charts drawn."""
    from selenium.webdriver.support.ui import WebDriverWait

    def open_page(name: str) -> Any:
        path, count = pages[name]
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", DESKTOP)
        browser.get(path.as_uri())
        WebDriverWait(browser, 60).until(lambda _: browser.execute_script(DRAWN) == count)
        return browser

    yield open_page
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def marks(browser: Any, chart: str, kind: str) -> int:
    asked = f"return document.querySelectorAll('#{chart} .mark-{kind}.role-mark path').length"
    return int(browser.execute_script(asked))


def click(browser: Any, selector: str) -> None:
    event = "new MouseEvent('click', {bubbles: true})"
    browser.execute_script(f"document.querySelector({selector!r}).dispatchEvent({event})")


_LEFT_OUT = {"exclude": [[".chart svg"], [".held tr:nth-child(n+4)"]]}


def serious(browser: Any, rules: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the violations found by axe-core that keep people from using the page.

    The inside of charts is hidden from screen readers, and only the first rows are checked, since
    all are alike.
    """
    from axe_core_python.selenium import Axe

    return [
        (one["id"], [node["html"][:160] for node in one["nodes"]][:3])
        for one in Axe().run(browser, _LEFT_OUT, rules)["violations"]
        if one["impact"] in ("serious", "critical")
    ]


NAMES = ("report", "compare", "sweep", "race", "profile")


def test_pages_ask_for_nothing_and_nothing_goes_wrong(opened: Opened) -> None:
    for name in NAMES:
        browser = opened(name)
        sent = [
            message["params"]["request"]["url"]
            for entry in browser.get_log("performance")
            if (message := json.loads(entry["message"])["message"])["method"]
            == "Network.requestWillBeSent"
        ]
        with case(name):
            assert [url for url in sent if not url.startswith(("file:", "data:"))] == []
            assert browsers.severe(browser) == []
            assert browser.execute_script("return document.images.length") == 0  # text stays text


CONTRAST = "color-contrast"


@pytest.mark.parametrize(
    "names", [NAMES[:2], pytest.param(NAMES[2:], marks=pytest.mark.slow)], ids=["most", "others"]
)
def test_pages_can_be_used_by_all(opened: Opened, names: Sequence[str]) -> None:
    but = {"resultTypes": ["violations"], "rules": {CONTRAST: {"enabled": 0}}}  # for JavaScript
    for name in names:
        with case(name):
            assert serious(opened(name), but) == []


@pytest.mark.parametrize(
    "names", [NAMES[1:2], pytest.param(NAMES, marks=pytest.mark.slow)], ids=["one", "all"]
)
def test_what_is_written_stands_out_in_the_light_and_in_the_dark(
    opened: Opened, names: Sequence[str]
) -> None:
    contrast = {"resultTypes": ["violations"], "runOnly": {"type": "rule", "values": [CONTRAST]}}
    for name in names:
        browser = opened(name)
        for scheme in ("light", "dark"):
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            with case(name, scheme):
                assert serious(browser, contrast) == []


def test_pages_fit_a_phone_and_tables_a_desk(opened: Opened) -> None:
    wider = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    tables = (
        "return [...document.querySelectorAll('.table .scroll, .rows .scroll')]"
        ".filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.ariaLabel)"
    )
    for name in NAMES:
        browser = opened(name)
        with case(name):
            assert browser.execute_script(tables) == []
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
            assert browser.execute_script(wider) <= 0


def test_charts_have_a_mark_for_each_thing(opened: Opened) -> None:
    browser = opened("report")
    assert marks(browser, "truth", "symbol") == 197  # three of 200 are invalid
    assert marks(browser, "part-0", "symbol") == 3
    assert marks(browser, "pit", "rect") == 20
    browser = opened("compare")
    assert marks(browser, "all-cost-train_seconds", "symbol") == 3  # experiments
    assert marks(browser, "all-fields", "symbol") == 9  # in three fields
    assert marks(browser, "all-coverage", "symbol") == 3 * 19  # levels
    browser = opened("sweep")
    assert marks(browser, "set-0-0-metric-0", "symbol") == 2
    assert marks(browser, "set-1-size", "symbol") == 2 * 10  # bins
    browser = opened("race")
    assert marks(browser, "skill", "symbol") == 4  # two models, the mean and the median
    assert marks(browser, "last-cost-train_seconds", "symbol") == 2
    assert marks(browser, "last-fields", "symbol") == 2 * 3
    browser = opened("profile")
    assert marks(browser, "field-0", "rect") == 40
    assert 3 < marks(browser, "grid-0", "symbol") <= 3 * 40


def test_a_click_shows_the_rows_behind_it(opened: Opened) -> None:
    for name, selector in (
        ("report", "#size .mark-symbol.role-mark path"),
        ("report", "#part-0 .mark-symbol.role-mark path"),
        ("compare", "#all-size .mark-symbol.role-mark path"),
        ("compare", "#all-0-metric-0 .mark-symbol.role-mark path"),
        ("sweep", "#set-1-size .mark-symbol.role-mark path"),
        ("race", "#skill .mark-symbol.role-mark path"),
    ):
        browser = opened(name)
        count = browser.find_element("css selector", ".count")
        every = re.fullmatch(r"40 of (\d+) rows", count.text)
        assert every is not None
        click(browser, selector)
        found = re.fullmatch(r"\d+ of (\d+) rows that match the selection", count.text)
        with case(name, selector):
            assert found is not None and 0 < int(found[1]) < int(every[1])


def test_pages_are_used_by_keyboard_alone(opened: Opened) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = opened("compare")
    button = browser.find_element("css selector", ".legend button")
    button.send_keys(Keys.SPACE)
    assert button.get_attribute("aria-pressed") == "true"
    count = browser.find_element("css selector", ".count")
    assert "that match the selection" in count.text
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert button.get_attribute("aria-pressed") == "false"
    head = browser.find_element("css selector", ".sortable thead th:last-child")
    head.find_element("css selector", "button").send_keys(Keys.ENTER)
    assert head.get_attribute("aria-sort") == "descending"
    first = browser.find_element("css selector", ".sortable tbody th")
    assert first.text == "fp15"  # with the largest errors
    select = browser.find_element("css selector", "#row-filter")
    select.send_keys("|truth|")
    assert "that match the selection" in count.text


def has_charts(count: int, browser: Any) -> bool:
    return len(browser.find_elements("css selector", "[data-chart] svg")) == count


def test_without_javascript_there_are_tables_and_still_charts(
    browser: Any, opened: Opened, pages: dict[str, tuple[Path, int]]
) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    for name, (path, count) in pages.items():
        browser.get(path.as_uri())
        with case(name):
            # Without scripts, the driver does not know when a page has loaded.
            WebDriverWait(browser, 60).until(partial(has_charts, count))
            assert not browser.find_elements("css selector", "[data-drawn]")
            shown = browser.find_elements("css selector", ".held tbody tr")
            assert len(shown) == (0 if name == "profile" else 40)
            assert browser.find_elements("css selector", ".sortable tbody tr")


def test_pages_are_printed_black_on_white_without_what_is_clicked(opened: Opened) -> None:
    browser = opened("compare")
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": dark})
    style = "return getComputedStyle(document.querySelector({0!r})).{1}"
    assert browser.execute_script(style.format("body", "backgroundColor")) == "rgb(255, 255, 255)"
    assert browser.execute_script(style.format("body", "color")) == "rgb(0, 0, 0)"
    for selector in ("nav", ".filter", ".more", "details"):
        assert browser.execute_script(style.format(selector, "display")) == "none"
    assert browser.execute_cdp_cmd("Page.printToPDF", {})["data"].startswith("JVBERi0")
