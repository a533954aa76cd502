"""The report of a run in the Prefect UI."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from components.files import read_json, write_json, write_text
from components.layout import Layout
from flows.run.workspace import Workspace
from flows.serving.pages import PAGES_VARIABLE
from flows.watching import artifacts
from flows.watching.artifacts import markdown
from tests.unit import report_fixture

DIGEST = "3f9a0c17b2d4" + "e" * 52
LINE = f"evenkeel approve {DIGEST[:12]} --by YOUR-NAME --key YOUR-KEY"


def workspace(layout: Layout) -> Workspace:
    made = SimpleNamespace(project=layout.root, root=layout.root, run_id="demo-1", layout=layout)
    return cast(Workspace, SimpleNamespace(**vars(made), settings=report_fixture.settings()))


@pytest.fixture(autouse=True)
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "approval_of_run", lambda *_: LINE)


def test_a_candidate_is_shown_with_figures_checks_and_plots(tmp_path: Path) -> None:
    layout = report_fixture.healthy(tmp_path)
    write_text(layout.verdict, "# Health of run demo\n\n**Warned: 60 steps.**\n")
    text = markdown(workspace(layout), DIGEST)
    assert text.startswith("# demo-1: a candidate\n")
    assert f"To decide: `{LINE}`." in text
    assert "**Warned: 60 steps.**" in text
    assert re.search(r"\| pass@1 \| [\d.]+% \| [\d.]+% \| \+[\d.]+ points \(95% interval", text)
    assert "| training health | pass | 1 warning, nothing stopped the run |" in text
    pictures = re.findall(r"!\[Accuracy over steps[^]]*\]\(data:image/png;base64,([^)]+)\)", text)
    assert [base64.b64decode(data)[:4] for data in pictures] == [b"\x89PNG"]
    assert text.count("data:image/png") == 5
    assert len(text) < 500_000


def test_a_champion_is_compared_with_the_trained_policy(tmp_path: Path) -> None:
    layout = report_fixture.healthy(tmp_path)
    found = read_json(layout.evaluation)
    over = {"gain_over_champion": found["gain"], "greedy_gain_over_champion": None, "champion": found["sft"]}
    write_json(layout.evaluation, found | over)
    text = markdown(workspace(layout), DIGEST)
    assert "|  | champion | trained | gain |" in text
    assert re.search(r"\| greedy \| [\d.]+% \| [\d.]+% \| - \|", text)


def test_a_refusal_is_shown_with_its_reason_and_whatever_there_is(tmp_path: Path) -> None:
    text = markdown(workspace(report_fixture.refused(tmp_path)), None, "triage refused the checkpoint:\n  - too *sure*")
    assert text.startswith("# demo-1: no candidate\n")
    assert "> triage refused the checkpoint:" in text
    assert r"\*sure\*" in text, "shown, not interpreted"
    assert "## Gate" not in text
    assert "data:image" not in text


def test_evidence_that_cannot_be_read_leaves_out_the_plots_and_says_so(tmp_path: Path) -> None:
    layout = report_fixture.healthy(tmp_path)
    write_text(layout.triage, "{}")
    assert "No plots: lacks verdict" in markdown(workspace(layout), DIGEST)


def test_pages_are_files_unless_they_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = workspace(report_fixture.refused(tmp_path))
    write_text(run.layout.report, "<html>")
    monkeypatch.delenv(PAGES_VARIABLE, raising=False)
    assert f"[Report](file://{tmp_path}/out/report.html)" in markdown(run, None)
    monkeypatch.setenv(PAGES_VARIABLE, "http://127.0.0.1:4300/")
    write_text(run.layout.data / "validation.html", "<html>")
    write_text(run.layout.audit_page, "<html>")
    out = "http://127.0.0.1:4300/runs/demo-1/out"
    pages = {"Report": "report.html", "Data validation": "data/validation.html", "Verifier audit": "audit.html"}
    assert " | ".join(f"[{title}]({out}/{name})" for title, name in pages.items()) in markdown(run, None)
