"""The report of ``bochner compare`` in a real browser, without a network."""

from __future__ import annotations

import re
import shutil

import pytest

from bochner.cli import main

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--window-size=1200,900",
         "--host-resolver-rules=MAP * ~NOTFOUND")  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    command = ["compare", "iris", "--kernel", "matern-5/2", "--rows", "30", "--draws", "2", "--features", "32"]
    assert main([*command, "--out", str(out)]) == 0
    return out / "index.html"


@pytest.fixture(scope="module")
def browser(page, tmp_path_factory):
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no chromium and chromedriver on this machine; the test set-up installs them where it can")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.get(page.as_uri())
    yield driver
    driver.quit()


def column(browser, k):
    cells = browser.find_elements("css selector", f"#mechanisms tbody tr:not([hidden]) td:nth-child({k})")
    return [cell.get_attribute("data-value") for cell in cells]


def test_the_page_refers_to_nothing_outside_itself(page):
    text = page.read_text()
    references = re.findall(r'(?:src|href)="([^"]*)"', text) + re.findall(r"url\(([^)]*)\)", text)
    assert references and all(reference.startswith(("data:", "#")) for reference in references)


def test_it_opens_without_an_error(browser):
    assert browser.title == "bochner compare"
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("name", ["curves", "predicted", "frontier", "grams"])
def test_every_figure_is_drawn(browser, name):
    (drawn,) = browser.find_elements("css selector", f"#{name} svg, #{name} img")
    assert drawn.size["width"] > 200 and drawn.size["height"] > 100
    if drawn.tag_name == "img":
        assert browser.execute_script("return arguments[0].complete && arguments[0].naturalWidth > 0", drawn)
    else:
        assert browser.execute_script("return arguments[0].querySelectorAll('path, use').length", drawn) > 20


def test_the_table_sorts_by_a_click_on_its_head(browser):
    errors = [float(v) for v in column(browser, 3)]
    assert len(errors) >= 10 and errors == sorted(errors)
    button = browser.find_element("css selector", "#mechanisms th:nth-child(6) button")
    button.click()
    times = [float(v) for v in column(browser, 6)]
    assert times == sorted(times)
    button.click()
    assert [float(v) for v in column(browser, 6)] == sorted(times, reverse=True)
    head = browser.find_element("css selector", "#mechanisms th:nth-child(6)")
    assert head.get_attribute("aria-sort") == "descending"


def test_the_table_is_filtered_by_name(browser):
    box = browser.find_element("id", "filter")
    box.send_keys("simplex")
    shown = column(browser, 1)
    assert shown and all("simplex" in name.lower() for name in shown)
    box.clear()
    browser.execute_script("arguments[0].dispatchEvent(new Event('input'))", box)
    assert len(column(browser, 1)) > len(shown)
