"""A headless Chromium and `evenkeel serve` for it to look at. Where none can be had, these tests skip and say why.

Playwright is installed by `make test-browser`. The browser is the machine's own Chromium, or else the one that
Playwright brings (`python -m playwright install chromium`). Screenshots are kept in `build/screenshots`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.ui import SCREENSHOTS, Ui
from tests.served.conftest import project, service
from tests.served.service import Service

__all__ = ["project", "service"]
"""The same as for the tests of what is served."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: `make test-browser` installs it")
    own = next(filter(None, map(shutil.which, NAMES)), None)
    with playwright.sync_playwright() as running:
        try:
            browser = running.chromium.launch(executable_path=own, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no browser: {str(error).splitlines()[0]}; `python -m playwright install chromium`")
        yield browser
        browser.close()


@pytest.fixture
def ui(chromium: Any, service: Service) -> Iterator[Ui]:
    """The Prefect UI in a fresh page."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page = chromium.new_page(viewport={"width": 1280, "height": 1000})
    yield Ui(page, service)
    page.close()
