"""A person starts a run from the UI's form, watches it, and opens its report. `evenkeel serve` is real."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.ui import SCREENSHOTS, Ui
from tests.served.service import Service, wait_for

pytestmark = pytest.mark.timeout(400)


def find(service: Service, override: str) -> dict[str, Any] | None:
    """The run that was started with it."""
    return next((run for run in service.flow_runs("post-training") if override in run["parameters"]["overrides"]), None)


def test_a_run_started_from_the_form_completes_and_shows_its_report(ui: Ui, service: Service) -> None:
    ui.open_form("post-training")
    ui.choose("recipe", "gspo")
    ui.add("overrides", "train.steps=20")
    ui.shot("1-form")
    ui.submit()

    run = wait_for(lambda: next(iter(service.flow_runs("post-training")), None), 30)
    assert run["parameters"]["recipe"] == "gspo"
    assert run["parameters"]["overrides"] == ["train.steps=20"]
    ui.open(f"/runs/flow-run/{run['id']}")
    ui.page.get_by_text("Running", exact=True).first.wait_for(timeout=60_000)
    ui.shot("2-running")
    ui.page.get_by_text("Completed", exact=True).first.wait_for(timeout=180_000)
    ui.page.wait_for_timeout(2000)  # the graph of stages follows
    ui.shot("3-completed")

    workspace = service.workspace(run["id"])
    ui.page.get_by_text("Artifacts", exact=True).first.click()
    ui.page.get_by_text("run-report").first.click()
    ui.page.get_by_role("heading", name="Report of run").or_(ui.page.get_by_text("pass@1")).first.wait_for()
    ui.shot("4-report")
    assert "pass@1" in ui.text()
    for image in ui.page.locator("img[src^='data:']").all():
        assert image.evaluate("picture => picture.complete && picture.naturalWidth > 0")

    with ui.page.context.expect_page() as opened:
        ui.page.get_by_role("link", name="Report", exact=True).click()
    opened.value.wait_for_load_state()
    opened.value.screenshot(path=SCREENSHOTS / "5-report-page.png", full_page=True)
    assert f"/runs/{workspace.name}/out/report.html" in opened.value.url
    assert "train" in opened.value.locator("body").inner_text()
    assert not ui.foreign, "the UI sends no requests to other servers"


def test_a_parameter_out_of_bounds_is_refused_by_the_form(ui: Ui, service: Service) -> None:
    before = len(service.flow_runs("post-training"))
    ui.open_form("post-training")
    ui.fill("max_hours", "-1")
    ui.submit(accepted=False)
    ui.page.get_by_text("less than the minimum").first.wait_for()
    ui.shot("6-refused")
    assert len(service.flow_runs("post-training")) == before


def test_a_setting_that_is_wrong_ends_the_run_with_words_and_no_traceback(ui: Ui, service: Service) -> None:
    wrong = "train.stepps=3"
    ui.open_form("post-training")
    ui.add("overrides", wrong)
    ui.submit()
    run = wait_for(lambda: find(service, wrong), 30)
    ended = service.wait(run["id"])
    assert ended["state_type"] == "FAILED"
    ui.open(f"/runs/flow-run/{run['id']}")
    ui.page.get_by_text("train.stepps: unknown setting").first.wait_for()
    ui.shot("7-wrong-setting")
    assert "Traceback" not in service.logs(run["id"])
