"""The reports of ``bochner compare`` in a real browser, without a network."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bochner.cli import main
from bochner.selection import _peers, _rivals
from support.browser import chrome as open_chrome
from support.browser import resize

KINDS = ("gram", "target")
WIDTHS = (400, 1300, 1900)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A report on Gram matrices, and one on a target."""
    out = tmp_path_factory.mktemp("report")
    few = ["--rows", "60", "--features", "32", "--draws", "2"]
    X = np.random.default_rng(0).standard_normal((60, 3))
    rows = [",".join(map(str, [*row, row[0] * row[1]])) for row in X]
    (out / "data.csv").write_text("\n".join(["a,b,c,y", *rows]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_peers, "_RATES", (0.2,))
        patch.setattr(_rivals, "MOST_TREES", 5)
        patch.setattr(_peers, "_COSTS", (10.0,))
        assert main(["compare", "iris", "--kernel", "arc-cosine-1", *few, "--out", str(out / "gram")]) == 0
        target = ["--target", "y", "--kernel", "matern-5/2", "--budget", "1e6"]
        assert main(["compare", str(out / "data.csv"), *target, *few, "--out", str(out / "target")]) == 0
    return {kind: out / kind / "index.html" for kind in KINDS}


@pytest.fixture(scope="module")
def chrome(tmp_path_factory):
    with open_chrome(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(params=KINDS)
def browser(request, chrome, pages):
    resize(chrome, 1300)
    chrome.get(pages[request.param].as_uri())
    return chrome


def column(browser, k, name="mechanisms"):
    script = """return [...document.querySelectorAll(`#${arguments[0]} tbody tr:not([hidden])`)]
                .map(row => row.cells[arguments[1] - 1].dataset.value)"""
    return browser.execute_script(script, name, k)


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_refers_to_nothing_outside_itself(pages, kind):
    text = pages[kind].read_text()
    references = re.findall(r'(?:src|href)="([^"]*)"', text) + re.findall(r"url\(([^)]*)\)", text)
    assert references and all(reference.startswith(("data:", "#")) for reference in references)


def test_it_opens_without_an_error(browser):
    assert browser.title == "bochner compare"
    assert browser.get_log("browser") == []


HIDDEN_PARTS = """
const wide = document.documentElement.scrollWidth > innerWidth, lost = [];
for (const cell of document.querySelectorAll("td, th, figcaption, svg, svg text, canvas, pre, .legend button")) {
  const box = cell.getBoundingClientRect();
  if (box.width && (box.left < -1 || box.right > innerWidth + 1)) lost.push(cell.textContent);
}
const first = [...document.querySelectorAll("#mechanisms tbody tr:first-child td")];
const cells = first.filter(c => c.getBoundingClientRect().width);
const shown = c => c.clientWidth >= c.scrollWidth && getComputedStyle(c).visibility === "visible";
return [wide, lost, cells.length, cells.every(shown), document.querySelectorAll("#mechanisms th").length];
"""


def test_every_column_and_figure_is_in_sight_at_every_width(browser):
    for width in WIDTHS:
        resize(browser, width)
        browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        wide, lost, n_cells, fit, n_columns = browser.execute_script(HIDDEN_PARTS)
        assert not wide and lost == [] and fit and n_cells == n_columns, width
        texts = "return [...document.querySelectorAll('svg text')].map(t => parseFloat(getComputedStyle(t).fontSize))"
        scale = browser.execute_script(
            "const s = document.querySelector('svg'); return s.getBoundingClientRect().width / s.viewBox.baseVal.width"
        )
        assert scale * min(browser.execute_script(texts)) > 11  # pixels: a figure is redrawn and not shrunk


CONTRAST = """
const linear = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(linear); return .2126 * r + .7152 * g + .0722 * b; };
const paper = light(getComputedStyle(document.body).backgroundColor), found = [];
for (const part of document.querySelectorAll("p, td, th button, figcaption, summary, pre code, svg text, .legend button")) {
  let behind = part;
  while (behind && getComputedStyle(behind).backgroundColor.match(/, 0\\)$/)) behind = behind.parentElement;
  const style = getComputedStyle(part), ink = light(part.closest("svg") ? style.fill : style.color);
  const ground = behind ? light(getComputedStyle(behind).backgroundColor) : paper;
  found.push((Math.max(ink, ground) + .05) / (Math.min(ink, ground) + .05));
}
return [paper, Math.min(...found)];
"""


@pytest.mark.parametrize("scheme", ("light", "dark"))
def test_text_is_readable_in_light_and_dark_mode(browser, scheme):
    """The contrast that the accessibility guidelines ask for is 4.5."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    paper, contrast = browser.execute_script(CONTRAST)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert (paper > 0.9) == (scheme == "light") and (paper < 0.1) == (scheme == "dark") and contrast >= 4.5


def test_figures_are_drawn_and_tell_their_points(browser):
    from selenium.webdriver import ActionChains

    figures = browser.find_elements("css selector", "figure:has(.plot)")
    assert len(figures) >= 2
    for figure in figures:
        points = figure.find_elements("css selector", "circle.point")
        assert len(points) > 5 and figure.find_element("css selector", "svg").size["height"] > 200
    n_points = len(figures[0].find_elements("css selector", "circle.point"))
    browser.execute_script("arguments[0].scrollIntoView()", figures[0])
    ActionChains(browser).move_to_element(figures[0].find_elements("css selector", "circle.point")[0]).perform()
    tip = figures[0].find_element("css selector", ".tip")
    assert tip.is_displayed() and "\n" in tip.text
    button = figures[0].find_element("css selector", ".legend button")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert len(figures[0].find_elements("css selector", "circle.point")) < n_points
    for canvas in browser.find_elements("css selector", "canvas"):
        colours = (
            "const c = arguments[0], drawn = c.getContext('2d').getImageData(0, 0, c.width, c.height);"
            "return new Set(drawn.data).size"
        )
        assert canvas.size["width"] > 100 and browser.execute_script(colours, canvas) > 2


def test_the_table_sorts_by_a_click_on_its_head(browser):
    errors = [float(v) for v in column(browser, 3)]
    assert len(errors) >= 8 and errors == sorted(errors)
    button = browser.find_element("css selector", "#mechanisms th:nth-child(5) button")
    button.click()
    values = [float(v) for v in column(browser, 5)]
    assert values == sorted(values)
    button.click()
    assert [float(v) for v in column(browser, 5)] == sorted(values, reverse=True)
    head = browser.find_element("css selector", "#mechanisms th:nth-child(5)")
    assert head.get_attribute("aria-sort") == "descending"


def test_the_table_is_filtered_by_name(browser):
    before = len(column(browser, 1))
    box = browser.find_element("id", "filter")
    box.send_keys("orthogonal")
    shown = column(browser, 1)
    assert shown and all("orthogonal" in name.lower() for name in shown)
    box.clear()
    browser.execute_script("arguments[0].dispatchEvent(new Event('input'))", box)
    assert len(column(browser, 1)) == before > len(shown)


def test_hopeless_rows_are_folded_away_and_found_by_the_filter(chrome, pages):
    chrome.get(pages["gram"].as_uri())
    folded, names = chrome.find_element("css selector", "details.folded"), column(chrome, 1, "folded")
    assert folded.get_attribute("open") is None and "times the lowest error" in folded.text
    assert names and min(map(float, column(chrome, 3, "folded"))) > max(map(float, column(chrome, 3)))
    chrome.find_element("id", "filter").send_keys(names[-1])
    assert folded.get_attribute("open") is not None and names[-1] in folded.text


def test_the_recommended_row_is_marked_and_its_code_shown(chrome, pages):
    chrome.get(pages["target"].as_uri())
    (row,) = chrome.find_elements("css selector", "tr.chosen")
    label = row.find_element("css selector", "td").get_attribute("data-value")
    words = chrome.find_element("css selector", ".decision").text
    assert f"Recommended: {label}" in words and "are equal within" in words
    assert chrome.find_element("id", "code").text == row.get_attribute("title").strip()
