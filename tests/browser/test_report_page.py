"""The report in a real browser: offline, by keyboard, on a phone, on paper. It needs no server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from components.files import write_jsonl, write_text
from components.report import load_run, render
from tests.browser.ui import SCREENSHOTS
from tests.unit import report_fixture as fixture

LONG = "step by step " * 120
HOSTILE = {
    "script": "<script>document.title='owned'</script>",
    "image": '<img src="http://127.0.0.1:9/x" onerror=alert(1)>',
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    layout = fixture.rescued(tmp_path_factory.mktemp("report"))
    rows = [fixture.sample(number) for number in range(30)]
    for row, text in zip(rows, HOSTILE.values(), strict=False):
        row["trained"] = {"text": text, "accuracy": 0.0}
    rows[2]["trained"] = {"text": LONG + "<b>THE-END</b>", "accuracy": 0.0}
    write_jsonl(layout.samples, rows)
    run = replace(load_run(fixture.settings("train.steps=60"), layout), origin={"run": "unbroken" * 9})
    write_text(layout.report, render(run))
    return layout.report.resolve().as_uri()


@pytest.fixture
def opened(chromium: Any, address: str) -> Iterator[Any]:
    """Opens the page as a given reader sees it; complains about whatever it asks for or says."""
    contexts, unexpected = [], []

    def open_(width: int = 1280, **reader: Any) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 900}, **reader)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: unexpected.append(request.url) if request.url != address else None)
        page.on("console", lambda message: unexpected.append(message.text))
        page.on("dialog", lambda dialog: unexpected.append(dialog.message))
        page.goto(address)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert unexpected == []


def test_it_asks_for_nothing_and_runs_nothing_whatever_a_model_wrote(opened: Any) -> None:
    page = opened()
    assert page.title().startswith("demo: Gate passed")
    assert page.locator("img, script, iframe, object, link").count() == 0
    assert page.get_by_text(HOSTILE["script"], exact=True).count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_nothing_runs_off_the_side_of_a_phone_or_a_screen(opened: Any, width: int, scheme: str) -> None:
    page = opened(width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"report-{scheme}-{width}.png", full_page=True)


def test_the_decision_is_on_the_first_screen(opened: Any) -> None:
    page = opened()
    for text in ("May checkpoint", "+55.3 points", "evenkeel approve"):
        box = page.get_by_text(text).first.bounding_box()
        assert box["y"] + box["height"] < 900, text


def test_the_keyboard_reaches_the_skip_link_first_and_it_is_seen_there(opened: Any) -> None:
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")


def test_a_folded_completion_opens_and_is_printed_whole(opened: Any) -> None:
    page = opened()
    end = page.get_by_text("<b>THE-END</b>")
    assert not end.is_visible()
    page.emulate_media(media="print")
    assert end.is_visible()
    assert not page.locator("nav").is_visible()
    page.emulate_media(media="screen")
    page.locator("details.long summary").first.click()
    assert end.is_visible()


def test_it_prints_on_a_dozen_pages_of_a4_on_white_paper_also_from_a_dark_screen(opened: Any) -> None:
    page = opened(color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(253, 253, 252)"
    pdf = page.pdf(prefer_css_page_size=True)
    assert 4 < pdf.count(b"/Type /Page\n") <= 16


def test_no_plot_and_no_row_of_a_table_is_taller_than_a_sheet(opened: Any) -> None:
    page = opened(700)
    page.emulate_media(media="print")
    heights = "[...document.querySelectorAll('figure, tr, .facts div')].map(e => e.getBoundingClientRect().height)"
    assert max(page.evaluate(heights)) < 1000
