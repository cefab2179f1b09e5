"""A headless browser that pages are tried in."""

import contextlib
import shutil
import time

import pytest

FLAGS = [
    "headless",
    "no-sandbox",
    "disable-gpu",
    "disable-quic",
    "no-first-run",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
    "disable-dev-shm-usage",
    "window-size=1300,800",
]


def start(profile):
    """Start Chromium with an empty profile; a test that cannot have it is skipped."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("no browser: chromium and chromedriver are not installed")
    webdriver = pytest.importorskip("selenium.webdriver", reason="no browser: selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    started = start(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()


def wait(browser, script, seconds=15):
    """Wait until an expression in the page is true; gives its value."""
    from selenium.common.exceptions import JavascriptException

    until = time.monotonic() + seconds
    while True:
        # Between two pages there is no document to ask.
        with contextlib.suppress(JavascriptException):
            value = browser.execute_script(f"return {script}")
            if value:
                return value
        assert time.monotonic() < until, f"still not true: {script}"
        time.sleep(0.05)


def ready(browser):
    """Wait until the page's script has drawn everything."""
    wait(browser, "document.documentElement.dataset.ready === 'yes'")


def complaints(browser):
    """What the browser has said against the page since the last time: errors, and what the policy stopped."""
    return [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"]
