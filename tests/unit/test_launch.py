"""The launcher seam, and the launcher that is this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from components import stages
from components.config import Settings
from components.config.judgement import LaunchSettings
from components.errors import NoCandidate
from components.launch import LAUNCHERS, Job, JobFailed, JobStatus, Launcher
from components.launch.inline import InlineLauncher
from components.layout import Layout

JOB = Job("train", Settings())


class Remote(Launcher):
    """Reports prepared statuses, one a look."""

    def __init__(self, *statuses: JobStatus) -> None:
        self.left = list(statuses)

    def submit(self, job: Job) -> str:
        return "a"

    def status(self, job_id: str) -> JobStatus:
        return self.left.pop(0)

    def logs(self, job_id: str) -> Iterator[str]:
        return iter(())

    def cancel(self, job_id: str) -> None: ...


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    calls: list[tuple[str, Path]] = []

    class Module:
        @staticmethod
        def run(settings: Settings, layout: Layout) -> None:
            calls.append((settings.name, layout.root))

    monkeypatch.setattr(stages.importlib, "import_module", lambda name: Module)
    return calls


def test_every_kind_of_launch_has_a_launcher() -> None:
    kinds = LaunchSettings.model_json_schema()["properties"]["kind"]
    assert set(LAUNCHERS) == set(kinds.get("enum", [kinds.get("const")]))


def test_inline_runs_the_stage_in_its_workspace(ran: list[tuple[str, Path]], tmp_path: Path) -> None:
    InlineLauncher().run(Job("train", Settings(name="x"), tmp_path))
    assert ran == [("x", tmp_path)]


def test_inline_jobs_have_ended_when_submit_returns(ran: list[tuple[str, Path]]) -> None:
    launcher = InlineLauncher()
    first, second = launcher.submit(JOB), launcher.submit(JOB)
    assert first != second
    launcher.cancel(first)
    assert launcher.status(first) == JobStatus("succeeded", 0)
    assert list(launcher.logs(second)) == []


def test_inline_raises_what_the_stage_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(stage: str, settings: Settings, layout: Layout) -> None:
        raise NoCandidate("no")

    monkeypatch.setattr("components.launch.inline.run_stage", refuse)
    with pytest.raises(NoCandidate):
        InlineLauncher().run(JOB)


def test_an_unknown_job_is_an_error() -> None:
    with pytest.raises(KeyError):
        InlineLauncher().status("train-0")


def test_waiting_ends_with_the_job() -> None:
    launcher = Remote(JobStatus("pending"), JobStatus("running"), JobStatus("succeeded", 0))
    assert launcher.wait("a", poll=0).state == "succeeded"
    assert launcher.left == []


@pytest.mark.parametrize(("status", "exit_code"), [(JobStatus("failed", 3, "no"), 3), (JobStatus("cancelled"), 2)])
def test_a_job_that_fails_elsewhere_raises_with_its_exit_code(status: JobStatus, exit_code: int) -> None:
    with pytest.raises(JobFailed) as caught:
        Remote(status).run(JOB)
    assert caught.value.exit_code == exit_code


def test_the_message_of_a_failed_job_is_the_stages_own() -> None:
    with pytest.raises(JobFailed, match=r"^triage refused$"):
        Remote(JobStatus("failed", 3, "triage refused")).run(JOB)
