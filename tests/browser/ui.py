"""The Prefect UI as a person uses it: only what is on the screen."""

from __future__ import annotations

from typing import Any

from tests.code_graph import ROOT
from tests.served.service import Service

SCREENSHOTS = ROOT / "build" / "screenshots"


class Ui:
    """A page of the UI that ``service`` serves; ``foreign`` are requests to anybody else."""

    def __init__(self, page: Any, service: Service) -> None:
        self.page, self._service = page, service
        self.root = service.api_url.removesuffix("/api")
        self.foreign: list[str] = []
        page.set_default_timeout(30_000)
        page.on("request", self._note)

    def _note(self, request: Any) -> None:
        if not request.url.startswith((self.root, self._service.place.pages_url, "data:", "blob:")):
            self.foreign.append(request.url)

    def open(self, path: str) -> None:
        self.page.goto(f"{self.root}{path}", wait_until="networkidle")

    def shot(self, name: str) -> None:
        """Keep what is on the screen."""
        self.page.wait_for_timeout(500)  # animations
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    def open_form(self, deployment: str) -> None:
        """From the list of deployments to the form of a run, by clicks."""
        self.open("/deployments")
        self.page.locator("a[href*='/deployments/deployment/']", has_text=deployment).first.click()
        self.page.get_by_role("button", name="Run", exact=True).click()
        self.page.get_by_text("Custom run").click()
        self.page.get_by_text("Run Name").wait_for()

    def field(self, name: str) -> Any:
        """The part of the form that belongs to a parameter."""
        return self.page.locator(".p-label", has_text=f"{name} (Optional)")

    def fill(self, name: str, value: str) -> None:
        self.field(name).locator("input, textarea").first.fill(value)

    def add(self, name: str, value: str) -> None:
        """One more item of a list."""
        self.field(name).get_by_text("Add item").click()
        self.field(name).locator("textarea").last.fill(value)

    def choose(self, name: str, value: str) -> None:
        """An option of a select box. A click would open and close it again."""
        self.field(name).locator("button").last.focus()
        self.page.keyboard.press("ArrowDown")
        self.page.get_by_role("option", name=value, exact=True).click()

    def submit(self, *, accepted: bool = True) -> None:
        """Send the form off; where it is ``accepted`` the UI goes to another page."""
        self.page.wait_for_timeout(500)  # what was typed last has to reach the form
        self.page.get_by_role("button", name="Submit").click()
        if accepted:
            self.page.wait_for_url(lambda url: not url.partition("?")[0].endswith("/run"), timeout=60_000)

    def text(self) -> str:
        return str(self.page.locator("body").inner_text())
