"""The launcher seam, and the launcher that starts a process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from components.config import Settings
from components.config.judgement import LaunchSettings
from components.files import read_jsonl
from components.launch import LAUNCHERS, Job, JobFailed, JobStatus, Launcher
from components.launch.processes import ProcessLauncher
from components.processes.living import lives
from components.progress import PROGRESS_VARIABLE
from tests.code_graph import ROOT

JOB = Job("train", Settings())


class Remote(Launcher):
    """Reports prepared statuses, one a look."""

    def __init__(self, *statuses: JobStatus) -> None:
        self.left = list(statuses)

    def submit(self, job: Job) -> str:
        return "a"

    def status(self, job_id: str) -> JobStatus:
        return self.left.pop(0)

    def cancel(self, job_id: str) -> None: ...


def test_every_kind_of_launch_but_this_process_has_a_launcher() -> None:
    kinds = LaunchSettings.model_json_schema()["properties"]["kind"]
    assert {*LAUNCHERS, "inline"} == set(kinds["enum"])


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


STAGE = """
import sys, time
from pathlib import Path
from components.config import load
from components.files import write_json

settings = load(Path(sys.argv[sys.argv.index("--config") + 1]))
print(sys.argv[1], settings.name, settings.launch.kind, Path.cwd().name, flush=True)
"""


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], tuple[ProcessLauncher, str]]]:
    """Submits a stage whose process does what the code says instead of a stage's work."""
    launcher, ids = ProcessLauncher(), []

    def submit(code: str) -> tuple[ProcessLauncher, str]:
        script = tmp_path / "stage.py"
        script.write_text(STAGE + code, encoding="utf-8")
        monkeypatch.setattr("components.launch.processes.MODULE", [str(script)])
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        ids.append(launcher.submit(Job("train", Settings(name="x", launch={"kind": "processes"}), tmp_path)))
        return launcher, ids[-1]

    yield submit
    for job_id in ids:
        launcher.cancel(job_id)


def log_in(workspace: Path) -> list[str]:
    return (workspace / "logs" / "driver.log").read_text(encoding="utf-8").splitlines()


def test_a_process_of_its_own_runs_the_stage_inline_in_the_workspace(launched, tmp_path: Path) -> None:
    launcher, job_id = launched("write_json(Path('.state/status/train.json'), {'exit_code': 0, 'message': ''})")
    assert launcher.wait(job_id, poll=0.05) == JobStatus("succeeded", 0)
    assert log_in(tmp_path) == [f"train x inline {tmp_path.name}"]
    launcher.cancel(job_id)
    assert launcher.status(job_id).state == "succeeded"


def test_what_the_stage_said_is_the_status_of_its_job(launched) -> None:
    launcher, job_id = launched(
        "write_json(Path('.state/status/train.json'), {'exit_code': 3, 'message': 'triage refused'}); sys.exit(3)"
    )
    assert launcher.wait(job_id, poll=0.05) == JobStatus("failed", 3, "triage refused")


@pytest.mark.parametrize("code", [1, 2])
def test_a_stage_that_failed_names_the_log_that_has_its_traceback(launched, tmp_path: Path, code: int) -> None:
    said = f"{{'exit_code': {code}, 'message': 'ZeroDivisionError: planted'}}"
    launcher, job_id = launched(f"write_json(Path('.state/status/train.json'), {said}); sys.exit({code})")
    status = launcher.wait(job_id, poll=0.05)
    log = tmp_path / "logs" / "driver.log"
    assert status == JobStatus("failed", code, f"ZeroDivisionError: planted\n  its own log: {log}")


def test_what_a_stage_in_a_process_of_its_own_says_of_its_progress_is_reported_here(
    launched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "driver.log").write_text("train 9/9  of an earlier job\n", encoding="utf-8")
    monkeypatch.setenv(PROGRESS_VARIABLE, str(tmp_path / "events"))
    code = "print('train 1/3  acc 0.5 | updating 2 of 8 rows, 0:01', 'other', flush=True, sep=chr(10))\n"
    own = f"import os; print(os.environ['{PROGRESS_VARIABLE}'])"
    launcher, job_id = launched(code + own)
    launcher.wait(job_id, poll=0.05)
    expected = {"stage": "train", "done": 1, "total": 3, "note": "acc 0.5", "work": "updating 2 of 8 rows, 0:01"}
    assert list(read_jsonl(tmp_path / "events")) == [expected]
    assert log_in(tmp_path)[-1] == os.devnull, "it does not write to the file itself"


def test_a_stage_that_was_killed_shows_how_and_the_end_of_its_log(launched) -> None:
    launcher, job_id = launched("import os; os.kill(os.getpid(), 9)")
    status = launcher.wait(job_id, poll=0.05)
    assert (status.state, status.exit_code) == ("failed", 137)
    assert "was ended by SIGKILL" in status.message
    assert "train x inline" in status.message


def test_a_stage_whose_process_ends_without_a_word_has_failed_whatever_its_exit_code(launched) -> None:
    launcher, job_id = launched("import os; os._exit(0)")
    status = launcher.wait(job_id, poll=0.05)
    assert (status.state, status.exit_code) == ("failed", 1)
    assert "driver ended with exit code 0" in status.message


def test_a_cancelled_job_ends_with_all_that_it_started(launched, tmp_path: Path) -> None:
    launcher, job_id = launched(
        "import subprocess; print(subprocess.Popen(['sleep', '60'], start_new_session=True).pid, flush=True)\n"
        "time.sleep(60)"
    )
    while len(lines := log_in(tmp_path)) < 2:
        assert launcher.status(job_id).state == "running"
    launcher.cancel(job_id)
    assert launcher.status(job_id).state == "cancelled"
    assert not lives(int(lines[1]))


def test_a_wait_that_is_interrupted_cancels_the_job() -> None:
    class Interrupted(Remote):
        cancelled = ""

        def status(self, job_id: str) -> JobStatus:
            raise KeyboardInterrupt

        def cancel(self, job_id: str) -> None:
            self.cancelled = job_id

    launcher = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        launcher.run(JOB)
    assert launcher.cancelled == "a"
