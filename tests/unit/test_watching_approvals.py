"""`evenkeel status` lists what awaits a person: by the registry alone, or with the suspended runs of a server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_watching_runs import FakePrefect, printed, ran, serving
from typer.testing import CliRunner

from components.config.promotion import FILE, load_policy
from components.registry import DirectoryStore
from flows.cli import app
from flows.governance.decisions import StatementOptions, promote_candidate, reject_candidate
from flows.governance.registry import DEFAULT, RegistryContext
from flows.watching import approvals
from flows.watching.approvals import Found, find_waiting
from tests.proposals import empty_project, propose_in


@pytest.fixture(scope="module")
def proposed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A project with one candidate, and its digest."""
    project = tmp_path_factory.mktemp("proposed") / "project"
    empty_project(project)
    return project, propose_in(project, 1.0).digest


@pytest.fixture
def project(proposed: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    root = Path(shutil.copytree(proposed[0], tmp_path / "project"))
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def digest(proposed: tuple[Path, str]) -> str:
    return proposed[1]


@pytest.fixture
def prefect(monkeypatch: pytest.MonkeyPatch, project: Path) -> Iterator[FakePrefect]:
    with serving() as server:
        monkeypatch.setenv("PREFECT_API_URL", server.url)
        yield server


def suspended(digest: str, **parameters: str) -> dict[str, Any]:
    """A suspended run of `promote` as the server lists it."""
    state = {"timestamp": "2026-01-03T08:30:00+00:00", "name": "Suspended"}
    return {
        "id": "f10", "name": "quiet-owl", "state_type": "PAUSED", "state": state,
        "parameters": {"digest": digest, **parameters},
    }  # fmt: skip


def test_without_a_server_a_candidate_without_a_decision_waits_since_its_run_ended(project: Path, digest: str) -> None:
    found = find_waiting(project, [ran(project, "demo-1", candidate=digest)])
    (one,) = found.waiting
    assert (one.candidate, one.run, one.since) == (digest, "demo-1", "2026-01-01T10:02:05+00:00")
    assert (one.waits_for, one.suspended) == ("1 approval", "")
    said = printed(approvals.show, found)
    assert digest[:12] in said and "demo-1" in said
    assert f"evenkeel approve {digest[:12]} --by YOUR-NAME" in said
    assert found.problems == []


def test_a_candidate_of_a_run_that_is_not_here_is_listed_by_what_its_record_says(project: Path) -> None:
    (one,) = find_waiting(project, []).waiting
    assert (one.run, one.since) == ("demo-1", "")


def test_a_suspended_run_says_since_when_it_asks_and_where_to_answer(
    project: Path, digest: str, prefect: FakePrefect
) -> None:
    prefect.others = [suspended(digest[:12])]  # type: ignore[list-item]
    found = find_waiting(project, [ran(project, "demo-1", candidate=digest)])
    (one,) = found.waiting
    assert one.since == "2026-01-03T08:30:00+00:00"
    assert one.suspended == f"{prefect.url.removesuffix('/api')}/runs/flow-run/f10"
    assert one.suspended in printed(approvals.show, found)


def test_a_suspended_run_about_another_registry_is_not_taken_for_this_one(
    project: Path, digest: str, prefect: FakePrefect
) -> None:
    prefect.others = [suspended(digest, registry="elsewhere")]  # type: ignore[list-item]
    (one,) = find_waiting(project, []).waiting
    assert one.suspended == ""


@pytest.mark.parametrize("code", [404, 500, 503])
def test_a_server_that_does_not_answer_well_is_said_and_the_candidate_is_shown_all_the_same(
    project: Path, digest: str, prefect: FakePrefect, code: int
) -> None:
    prefect.code = code
    found = find_waiting(project, [])
    assert [one.candidate for one in found.waiting] == [digest]
    (problem,) = found.problems
    assert "which runs of `promote` are suspended is not known" in problem


def test_a_registry_that_cannot_be_read_is_said(project: Path, digest: str) -> None:
    next((project / DEFAULT).rglob(f"candidates/{digest}.json")).write_text("{")
    found = find_waiting(project, [])
    assert found.waiting == []
    assert found.problems[0].startswith(f"the candidates in the registry {DEFAULT} are not known: ")


def test_a_decided_candidate_waits_for_no_approval(project: Path, digest: str) -> None:
    context = RegistryContext(project, DirectoryStore(project / DEFAULT), load_policy(project))
    reject_candidate(context, digest, StatementOptions("Grace", "no"))
    assert find_waiting(project, []) == Found([], [])
    assert printed(approvals.show, Found([], [])) == ""


def test_several_approvals_are_counted_as_they_come(project: Path, digest: str) -> None:
    (project / FILE).write_text("promote: {approvals: 2}\n", encoding="utf-8")
    (one,) = find_waiting(project, []).waiting
    assert one.waits_for == "2 approvals"
    context = RegistryContext(project, DirectoryStore(project / DEFAULT), load_policy(project))
    promote_candidate(context, digest, StatementOptions("Ada", "it is better"))
    (one,) = find_waiting(project, []).waiting
    assert one.waits_for == "2 approvals, 1 given"
    (project / FILE).write_text("promote: {approvals: 2}\nvalid_days: 3\n", encoding="utf-8")
    (one,) = find_waiting(project, []).waiting
    assert one.waits_for == "2 approvals", "an approval under another policy does not count"


def test_the_command_prints_both_tables_and_json_has_what_each_run_waits_for(project: Path, digest: str) -> None:
    ran(project, "demo-1", candidate=digest)
    ran(project, "demo-2", candidate=None, state="refused")
    assert "awaiting approval" in CliRunner().invoke(app, ["status"]).output
    rows = {row["run"]: row for row in json.loads(CliRunner().invoke(app, ["status", "--json"]).output)}
    assert rows["demo-1"]["waiting"]["waits_for"] == "1 approval"
    assert rows["demo-2"]["waiting"] is None


def test_json_has_a_row_for_a_candidate_of_no_run_that_is_here(project: Path, digest: str) -> None:
    (row,) = approvals.rows([], [replace(find_waiting(project, []).waiting[0], run="demo-9")])
    assert (row["run"], row["state"], row["candidate"]) == ("demo-9", "candidate", digest)
    assert row["waiting"]["waits_for"] == "1 approval"
