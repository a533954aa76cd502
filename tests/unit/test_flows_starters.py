"""Who started a run: a claim that is stored, and that a person who continues the run cannot remove."""

import getpass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from components.files import write_text
from flows.host.git import git
from flows.recording import lineage
from flows.recording.lineage import local_identity, note_starter, trace
from flows.run.workspace import Workspace
from tests.unit.flows_project import build, ready


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return ready(build(tmp_path_factory.mktemp("starters") / "project"))


@pytest.fixture(autouse=True)
def forgotten(workspace: Workspace) -> None:
    (workspace.layout.state / lineage.FILE).unlink(missing_ok=True)


def made_by(monkeypatch: pytest.MonkeyPatch, kind: str | None, name: str = "", deployment: str = "") -> None:
    """Prefect says this of whoever made the flow run."""

    class Client:
        def __enter__(self) -> "Client":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def read_flow_run(self, _: object) -> Any:
            by = SimpleNamespace(type=kind, display_value=name) if kind else None
            return SimpleNamespace(created_by=by, deployment_id="d" if deployment else None)

        def read_deployment(self, _: object) -> Any:
            return SimpleNamespace(name=deployment)

    monkeypatch.setattr("prefect.client.orchestration.get_client", lambda sync_client: Client())


FLOW_RUN = "00000000-0000-0000-0000-000000000001"


def test_at_a_terminal_it_is_the_identity_of_git_and_the_login(workspace: Workspace) -> None:
    git(workspace.project, "config", "user.name", "Ada Lovelace")
    git(workspace.project, "config", "user.email", "ada@example.org")
    assert local_identity(workspace.project) == ["Ada Lovelace", "ada@example.org", getpass.getuser()]
    note_starter(workspace, FLOW_RUN, deployed=False)
    assert lineage.starters(workspace) == sorted(["Ada Lovelace", "ada@example.org", getpass.getuser()])


@pytest.mark.parametrize(
    ("kind", "name", "deployment", "expected"),
    [
        ("SCHEDULE", "0 3 * * *", "nightly", ["schedule:nightly"]),
        ("AUTOMATION", "on-data", "", ["on-data"]),
        ("USER", "ada@example.org", "", ["ada@example.org"]),
        (None, "", "", []),
        ("USER", "", "", []),
    ],
)
def test_of_a_deployed_run_it_is_what_prefect_says(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, kind: str | None, name: str, deployment: str, expected: Any
) -> None:
    made_by(monkeypatch, kind, name, deployment)
    note_starter(workspace, FLOW_RUN, deployed=True)
    assert lineage.starters(workspace) == expected


def test_who_continues_a_run_is_added(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    made_by(monkeypatch, "USER", "ada")
    note_starter(workspace, FLOW_RUN, deployed=True)
    made_by(monkeypatch, "USER", "bob")
    note_starter(workspace, FLOW_RUN, deployed=True)
    assert lineage.starters(workspace) == ["ada", "bob"]


@pytest.mark.parametrize("order", [(None, "USER"), ("USER", None)])
def test_where_one_of_them_is_not_known_nothing_is_claimed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, order: tuple[str | None, str | None]
) -> None:
    for kind in order:
        made_by(monkeypatch, kind, "ada")
        note_starter(workspace, FLOW_RUN, deployed=True)
    assert lineage.starters(workspace) == []


def test_what_is_proposed_says_it_in_its_evidence(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text(workspace.layout.train_checkpoint / "config.json", "{}")
    assert trace(workspace)["started_by"] == []
    made_by(monkeypatch, "USER", "ada")
    note_starter(workspace, FLOW_RUN, deployed=True)
    assert trace(workspace)["started_by"] == ["ada"]


def test_a_folder_without_git_identity_still_has_a_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "--quiet")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    assert local_identity(tmp_path) == [getpass.getuser()]
