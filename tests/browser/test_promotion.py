"""A person approves a candidate in the Prefect UI, and turns another one down. Nothing is trained for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.ui import SCREENSHOTS, Ui
from tests.served.asking import Question, champion, decisions, make_candidate
from tests.served.service import Service

pytestmark = pytest.mark.timeout(400)


def open_form(ui: Ui, question: Question) -> Any:
    """From the run's page to the form, as a person does; the dialog."""
    ui.open(f"/runs/flow-run/{question.id}")
    ui.page.get_by_text("Suspended", exact=True).first.wait_for()
    ui.page.get_by_role("button", name="Resume", exact=True).click()
    dialog = ui.page.locator(".p-modal")
    dialog.get_by_text("The gate says pass").wait_for()
    return dialog


def field(dialog: Any, name: str) -> Any:
    return dialog.locator(".p-label", has_text=name)


def choose(ui: Ui, dialog: Any, decision: str) -> None:
    field(dialog, "Decision").locator("button").last.focus()
    ui.page.keyboard.press("ArrowDown")
    ui.page.get_by_role("option", name=decision, exact=True).click()


def submit(ui: Ui, dialog: Any) -> None:
    ui.page.wait_for_timeout(500)  # what was typed last has to reach the form
    dialog.get_by_role("button", name="Submit").click()


def test_a_candidate_is_approved_in_the_ui_and_becomes_the_champion(ui: Ui, service: Service, project: Path) -> None:
    digest = make_candidate(project, 0.1)
    asked = Question.about(service, digest).suspended()
    ui.open(f"/runs/flow-run/{asked.id}")
    ui.page.get_by_text("Suspended", exact=True).first.wait_for()
    ui.shot("promotion-1-suspended")
    dialog = open_form(ui, asked)
    ui.shot("promotion-2-form")
    with ui.page.context.expect_page() as opened:
        dialog.get_by_role("link", name="Report", exact=True).click()
    opened.value.wait_for_load_state()
    assert "/evidence/" in opened.value.url
    assert opened.value.evaluate("document.contentType") == "text/html"
    opened.value.close()

    submit(ui, dialog)
    dialog.get_by_text("is a required property").first.wait_for()
    ui.shot("promotion-3-empty-form-refused")
    assert asked.asked == 1
    assert champion(project) is None

    choose(ui, dialog, "approve")
    field(dialog, "Your name").locator("input, textarea").first.fill("Ada Lovelace")
    field(dialog, "Reason").locator("input, textarea").first.fill("Better on every family.")
    ui.shot("promotion-4-filled-in")
    submit(ui, dialog)
    dialog.wait_for(state="hidden")
    asked.ended("Promoted")
    ui.open(f"/runs/flow-run/{asked.id}")
    ui.page.get_by_text("Promoted", exact=True).first.wait_for()
    ui.shot("promotion-5-promoted")
    assert champion(project) == digest
    assert decisions(project)[-1].by == "Ada Lovelace"
    assert not ui.foreign, "the UI sends no requests to other servers"


def test_another_is_rejected_with_a_reason(ui: Ui, service: Service, project: Path) -> None:
    before = champion(project)
    asked = Question.about(service, make_candidate(project, 0.2)).suspended()
    dialog = open_form(ui, asked)
    choose(ui, dialog, "reject")
    field(dialog, "Your name").locator("input, textarea").first.fill("Grace Hopper")
    field(dialog, "Reason").locator("input, textarea").first.fill("It drops carries.")
    submit(ui, dialog)
    dialog.wait_for(state="hidden")
    asked.ended("Rejected")
    ui.open(f"/runs/flow-run/{asked.id}")
    ui.page.get_by_text("Rejected", exact=True).first.wait_for()
    ui.page.get_by_text("Artifacts", exact=True).first.click()
    ui.page.get_by_text("promotion-request").first.click()
    ui.page.get_by_text("rejected by Grace Hopper (record 2): It drops carries.").first.wait_for()
    ui.shot("promotion-6-rejected")
    record = decisions(project)[-1]
    assert (record.outcome, record.by, record.reason) == ("rejected", "Grace Hopper", "It drops carries.")
    assert champion(project) == before


def test_a_question_that_is_asked_again_says_why(ui: Ui, service: Service, project: Path) -> None:
    asked = Question.about(service, make_candidate(project, 0.3)).suspended()
    asked.answer(decision="approve", by="A\u200bda")
    asked.suspended(2)
    dialog = open_form(ui, asked)
    dialog.get_by_text("The answer was not taken").wait_for()
    ui.shot("promotion-7-asked-again")
    assert (SCREENSHOTS / "promotion-7-asked-again.png").exists()
