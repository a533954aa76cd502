"""Pods are whoever owns the run's folder, or can write there all the same; else the run is refused before it begins."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from components.config import load
from components.config.kubernetes import KubernetesSettings
from components.errors import InputError
from components.launch.kubernetes import submission
from components.launch.kubernetes.manifests import jobset
from components.launch.kubernetes.plan import USER
from components.launch.kubernetes.submission import user_of
from flows.cli import app
from tests.kubernetes.policy import violations
from tests.kubernetes.profiles import CPU, PROFILES, ROOT, plan

OTHER = "launch.kubernetes.user=2000"


def how(*overrides: str, state: str = "{kind: volume, claim: shared, path: /shared}") -> KubernetesSettings:
    found = load(ROOT / CPU, [f"launch.kubernetes.shared={state}", "rollout.engine.transfer=broadcast", *overrides])
    assert found.launch.kubernetes is not None
    return found.launch.kubernetes


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that belongs to user 1000, whoever runs the tests."""
    folder = tmp_path / "demo-1"
    folder.mkdir(mode=0o755)
    belongs_to(1000, monkeypatch)
    return folder


def belongs_to(user: int, monkeypatch: pytest.MonkeyPatch, group: int = 100) -> None:
    true = Path.stat

    def stat(path: Path, **options: bool) -> os.stat_result:
        found = list(true(path, **options))
        found[4], found[5] = user, group
        return os.stat_result(found)

    monkeypatch.setattr(Path, "stat", stat)


@pytest.mark.parametrize(
    ("settings", "mode", "group", "user"),
    [
        (how(), 0o755, 100, 1000),
        (how(state="{kind: s3, uri: 's3://bucket/runs'}"), 0o755, 100, 10001),
        (how(OTHER), 0o777, 100, 2000),
        (how(OTHER), 0o770, 10001, 2000),
    ],
    ids=["the owner", "the default user", "who may write as everybody", "who may write as the group of pods"],
)
def test_pods_are_the_owner_of_the_folder_that_they_share_or_who_may_write_there(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, settings: KubernetesSettings, mode: int, group: int, user: int
) -> None:
    workspace.chmod(mode)
    belongs_to(1000, monkeypatch, group)
    assert user_of(settings, workspace) == user


def test_of_a_folder_that_is_not_there_yet_the_owner_is_going_to_be_us(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    assert user_of(how(), workspace / "none") == 1234


@pytest.mark.parametrize(
    ("owner", "settings", "what"),
    [(0, how(), "pods never run as root"), (1000, how(OTHER), "as user 2000 .* belongs to user 1000")],
)
def test_who_is_root_or_could_not_write_is_refused(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, owner: int, settings: KubernetesSettings, what: str
) -> None:
    belongs_to(owner, monkeypatch)
    with pytest.raises(InputError, match=what) as raised:
        user_of(settings, workspace)
    assert "launch.kubernetes.user" in str(raised.value)


@pytest.mark.parametrize(
    ("shared", "user"), [("{kind: volume, claim: shared, path: /shared}", 1234), ("{kind: s3, uri: s3://runs}", USER)]
)
def test_a_dry_run_shows_the_user_that_pods_would_be(monkeypatch: pytest.MonkeyPatch, shared: str, user: int) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    monkeypatch.setenv("EVENKEEL_RUN_OWNER", "us")
    options = ["--set", f"launch.kubernetes.shared={shared}", "--set", "rollout.engine.transfer=broadcast"]
    found = CliRunner().invoke(app, ["launch", "--dry-run", *options], catch_exceptions=False)
    assert set(re.findall(r"runAsUser: (\d+)", found.stdout)) == {str(user)}


@pytest.mark.parametrize("name", PROFILES)
def test_every_pod_is_that_user(name: str) -> None:
    manifest = jobset(plan(name, user=1000))
    for job in manifest["spec"]["replicatedJobs"]:
        pod = job["template"]["spec"]["template"]["spec"]
        everybody = (pod, *pod["containers"], *pod.get("initContainers", ()))
        assert {one["securityContext"]["runAsUser"] for one in everybody} == {1000}
    assert violations(manifest) == []


# Whom a run belongs to, where its settings do not say it


def nameless() -> NoReturn:
    raise KeyError("getpwuid(): uid not found: 10001")


def test_a_run_belongs_to_whom_the_environment_names_and_else_to_who_submits_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(submission, "getuser", lambda: "ada")
    monkeypatch.delenv(submission.OWNER_VARIABLE, raising=False)
    assert submission.submitter() == "ada"
    monkeypatch.setenv(submission.OWNER_VARIABLE, "grace")
    assert submission.submitter() == "grace"


def test_in_a_container_whose_user_has_no_name_it_has_to_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(submission.OWNER_VARIABLE, raising=False)
    monkeypatch.setattr(submission, "getuser", nameless)
    with pytest.raises(InputError, match="this user has no name") as caught:
        submission.submitter()
    assert "launch.kubernetes.owner" in str(caught.value)
