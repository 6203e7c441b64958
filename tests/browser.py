"""A headless browser: one session for all tests of a module."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed (Debian: chromium-driver)")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options, webdriver.ChromeService(driver))
    started.set_script_timeout(300)  # axe-core is slow on a busy computer
    yield started
    started.quit()


def severe(browser: Any) -> list[Any]:
    """Return the severe errors in the browser's log."""
    return [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
