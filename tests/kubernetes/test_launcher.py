"""Submitting, waiting and cancelling, against an API server with injected faults."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from components.config import Settings, load
from components.errors import InputError
from components.files import write_text
from components.launch import LAUNCHERS, Job
from components.launch.kubernetes import launcher as module
from components.launch.kubernetes.api import Cluster, Refused
from components.launch.kubernetes.launcher import KubernetesLauncher
from components.layout import Layout
from components.pods.code import COPY
from components.progress import PROGRESS_VARIABLE
from components.status import StageStatus, read_status, write_status
from tests.kubernetes.conftest import QUICK
from tests.kubernetes.fake_api import FakeApi, Fault, answers
from tests.kubernetes.profiles import CPU, ROOT

KEY = ("jobsets", "evenkeel", "demo-1")
ENDED = "jobset failed due to one or more job failures (first failed job: demo-1-learner-0)"


def of_cpus(folder: Path, *changes: str) -> Settings:
    state = f"launch.kubernetes.shared={{kind: volume, claim: shared, path: {folder}}}"
    return load(ROOT / CPU, [state, "launch.kubernetes.owner=ada", "launch.kubernetes.user=1000", *changes])


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Of a workspace without code: what is copied there has tests of its own, with those of pods."""
    monkeypatch.setattr(module, "copy_installed", lambda folder: write_text(folder / COPY / "components/x.py", ""))
    workspace = tmp_path / "runs" / "demo-1"
    workspace.mkdir(parents=True)
    workspace.chmod(0o777)
    return Job("train", of_cpus(tmp_path), workspace)


def connect(namespace: str, context: str | None) -> Cluster:
    return Cluster.connect(namespace, context, QUICK)


@pytest.fixture
def launcher(config: Path) -> KubernetesLauncher:
    return KubernetesLauncher(connect)


def ended(api: FakeApi, kind: str = "Completed", **status: Any) -> None:
    """As the JobSet controller leaves it."""
    found = api.store.get(KEY)
    assert found is not None
    condition = {"type": kind, "status": "True", "reason": "FailedJobs", "message": ENDED}
    api.put("jobsets", {**found, "status": {"conditions": [condition], "terminalState": kind, **status}})


def test_the_name_in_the_settings_is_this_launcher() -> None:
    assert isinstance(LAUNCHERS["kubernetes"](), KubernetesLauncher)


def test_a_run_is_one_jobset_and_a_file_of_settings(api: FakeApi, launcher: KubernetesLauncher, job: Job) -> None:
    assert launcher.submit(job) == "demo-1"
    assert list(api.store.objects) == [KEY]
    assert api.store.objects[KEY]["metadata"]["labels"]["evenkeel/owner"] == "ada"
    given = load(job.workspace / ".state" / "launch" / "train.yaml")
    assert given.launch.kind == "processes" and given.learner == job.settings.learner
    assert (job.workspace / COPY / "components").is_dir()


def test_what_the_server_refuses_leaves_nothing_behind(api: FakeApi, launcher: KubernetesLauncher, job: Job) -> None:
    refused = answers.status(422, "Invalid", "JobSet is invalid: spec.replicatedJobs: too many")
    api.faults.add(Fault("status", "POST", "dryRun", body=refused))
    with pytest.raises(Refused, match="too many"):
        launcher.submit(job)
    assert api.store.objects == {}
    assert not (job.workspace / ".state" / "launch" / "train.yaml").exists()


def test_a_run_that_is_at_work_is_taken_over(
    api: FakeApi, launcher: KubernetesLauncher, job: Job, config: Path
) -> None:
    launcher.submit(job)
    before = api.store.objects[KEY]["metadata"]["uid"]
    assert KubernetesLauncher(connect).submit(job) == "demo-1"
    assert api.store.objects[KEY]["metadata"]["uid"] == before
    assert api.count("delete", "jobsets") == 0


def test_a_run_that_has_ended_makes_room(api: FakeApi, launcher: KubernetesLauncher, job: Job) -> None:
    launcher.submit(job)
    uid = api.store.objects[KEY]["metadata"]["uid"]
    ended(api, "Failed")
    launcher.submit(job)
    assert api.store.objects[KEY]["metadata"]["uid"] != uid


@pytest.mark.parametrize("change", ["seed=17", "launch.kubernetes.deadline=99"])
def test_another_run_of_this_name_that_is_at_work_is_left_alone(
    api: FakeApi, launcher: KubernetesLauncher, job: Job, tmp_path: Path, change: str
) -> None:
    """Also where only the file of its pods has other settings."""
    launcher.submit(job)
    uid = api.store.objects[KEY]["metadata"]["uid"]
    given = (job.workspace / ".state" / "launch" / "train.yaml").read_bytes()
    with pytest.raises(InputError, match="on the cluster already") as refusal:
        launcher.submit(Job("train", of_cpus(tmp_path, change), job.workspace))
    assert "evenkeel cluster cancel demo-1" in str(refusal.value)
    assert api.store.objects[KEY]["metadata"]["uid"] == uid
    assert (job.workspace / ".state" / "launch" / "train.yaml").read_bytes() == given


def test_an_object_that_is_none_of_ours_is_left_alone(api: FakeApi, launcher: KubernetesLauncher, job: Job) -> None:
    api.put("jobsets", {"metadata": {"name": "demo-1"}, "spec": {}})
    with pytest.raises(InputError, match="another object"):
        launcher.submit(job)
    assert list(api.store.objects) == [KEY]


def test_a_run_that_is_being_cancelled_is_waited_for_and_not_taken_over(
    api: FakeApi, launcher: KubernetesLauncher, job: Job
) -> None:
    """Whoever took it over would only see it go."""
    launcher.submit(job)
    dying = api.store.objects[KEY]
    dying["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    threading.Timer(1.0, lambda: api.store.objects.pop(KEY, None)).start()
    again = KubernetesLauncher(connect)
    assert again._jobs[again.submit(job)].uid != dying["metadata"]["uid"]
    assert "deletionTimestamp" not in api.store.objects[KEY]["metadata"]


@pytest.mark.parametrize("kind", ["Completed", None])
def test_another_run_whose_stage_is_called_like_this_run_is_left_alone(
    api: FakeApi, launcher: KubernetesLauncher, job: Job, kind: str | None
) -> None:
    """Run `demo-1` is stage train of that run, and might be stage 1 of another."""
    launcher.submit(job)
    found = api.store.objects[KEY]
    found["metadata"]["labels"]["evenkeel/run"] = "demo"
    if kind:
        ended(api, kind)
    with pytest.raises(InputError, match="another object"):
        launcher.submit(job)
    assert KEY in api.store.objects


def test_cancelling_removes_the_run_and_says_so(api: FakeApi, launcher: KubernetesLauncher, job: Job) -> None:
    name = launcher.submit(job)
    launcher.cancel(name)
    assert KEY not in api.store.objects
    assert launcher.status(name).state == "cancelled"


def waited(launcher: KubernetesLauncher, name: str) -> tuple[list[str], threading.Thread]:
    """A thread that waits for a job by now, and where it puts the job's state."""
    found: list[str] = []
    waiting = threading.Thread(target=lambda: found.append(launcher.wait(name, 0.2).state), daemon=True)
    waiting.start()
    time.sleep(0.5)
    return found, waiting


def test_waiting_for_a_run_that_is_cancelled_returns_cancelled(
    api: FakeApi, launcher: KubernetesLauncher, job: Job
) -> None:
    name = launcher.submit(job)
    found, waiting = waited(launcher, name)
    launcher.cancel(name)
    waiting.join(60)
    assert found == ["cancelled"]


def test_a_job_that_has_ended_stays_as_it_is_when_cancelled(
    api: FakeApi, launcher: KubernetesLauncher, job: Job
) -> None:
    name = launcher.submit(job)
    ended(api)
    launcher.cancel(name)
    assert launcher.status(name).state == "succeeded" and KEY in api.store.objects


def test_an_interrupted_wait_cancels(
    api: FakeApi, launcher: KubernetesLauncher, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "changes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launcher.run(job)
    assert KEY not in api.store.objects


def test_a_stage_that_failed_says_why_in_its_own_words(api: FakeApi, launcher: KubernetesLauncher, job: Job) -> None:
    name = launcher.submit(job)
    assert read_status(Layout(job.workspace), "train") is None
    pod = {"name": "demo-1-learner-0-0-abcde", "labels": _pod_labels(api)}
    state = {"terminated": {"exitCode": 2, "message": "cut off"}}
    statuses = [{"name": "learner", "state": state, "restartCount": 0}]
    api.put("pods", {"metadata": pod, "status": {"phase": "Failed", "containerStatuses": statuses}})
    said = "Container learner for pod evenkeel/demo-1-learner-0-0-abcde failed with exit code 2 matching FailJob rule"
    failed = [{"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": said}]
    api.put(
        "jobs",
        {"metadata": {"name": "demo-1-learner-0", "labels": _pod_labels(api)}, "status": {"conditions": failed}},
    )
    write_status(Layout(job.workspace), "train", StageStatus(2, "no triage\n  fix:   run it first"))
    ended(api, "Failed")
    assert launcher.status(name).message == "no triage\n  fix:   run it first"
    assert launcher.status(name).exit_code == 2


def _pod_labels(api: FakeApi) -> dict[str, str]:
    return {
        "jobset.sigs.k8s.io/jobset-name": "demo-1",
        "jobset.sigs.k8s.io/jobset-uid": api.store.objects[KEY]["metadata"]["uid"],
        "jobset.sigs.k8s.io/replicatedjob-name": "learner",
        "jobset.sigs.k8s.io/restart-attempt": "0",
    }


def test_a_server_that_is_away_for_a_while_ends_no_run(
    api: FakeApi, launcher: KubernetesLauncher, job: Job, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    """The pods do not need it, and whoever waits must not cancel them: silence is no refusal."""
    monkeypatch.setattr(module, "FORGIVEN", 0.0)
    name = launcher.submit(job)
    found, waiting = waited(launcher, name)
    api.stop()
    time.sleep(2)
    api.start()
    ended(api)
    waiting.join(60)
    assert found == ["succeeded"]


def test_a_cluster_that_refuses_for_a_moment_ends_no_run(
    api: FakeApi, launcher: KubernetesLauncher, job: Job, capfd: Any
) -> None:
    """As a server does that is being started and knows no roles yet, or where somebody has to log in again."""
    name = launcher.submit(job)
    refused = answers.forbidden("get", "jobsets", "jobset.x-k8s.io", "evenkeel")
    api.faults.add(Fault("status", "GET", r"jobsets/demo-1", 2, body=refused, meanwhile=lambda: ended(api)))
    assert launcher.wait(name, 0.2).state == "succeeded"
    assert "still waiting" in capfd.readouterr().err


def test_a_cluster_that_goes_on_refusing_is_not_waited_for_for_ever(
    api: FakeApi, launcher: KubernetesLauncher, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FORGIVEN", 0.0)
    name = launcher.submit(job)
    refused = answers.forbidden("get", "jobsets", "jobset.x-k8s.io", "evenkeel")
    api.faults.add(Fault("status", "GET", r"jobsets/demo-1", 10**6, body=refused))
    with pytest.raises(Refused, match="may not get jobsets"):
        launcher.wait(name, 0.2)


def test_nothing_is_waited_for_after_the_last_deadline(api: FakeApi, launcher: KubernetesLauncher, job: Job) -> None:
    name = launcher.submit(job)
    api.store.objects[KEY]["metadata"]["annotations"]["evenkeel/deadline"] = "2026-01-01T00:00:00Z"
    status = launcher.wait(name, 0.2)
    assert status.state == "cancelled" and "launch.kubernetes.deadline" in status.message
    assert KEY not in api.store.objects


# Where the JobSet is gone, or is another one


@pytest.mark.parametrize(
    ("said", "state", "code"), [(0, "succeeded", 0), (3, "failed", 3), (75, "failed", 75), (None, "failed", 75)]
)
def test_a_jobset_that_went_before_anybody_looked_ended_as_its_stage_said(
    api: FakeApi, launcher: KubernetesLauncher, job: Job, said: int | None, state: str, code: int
) -> None:
    """Its ttl was over while the server, or whoever waits, was away."""
    name = launcher.submit(job)
    if said is not None:
        write_status(Layout(job.workspace), "train", StageStatus(said, "in its own words"))
    api.store.remove(KEY)
    status = launcher.wait(name, 0.2)
    assert (status.state, status.exit_code) == (state, code)
    assert (status.message == "in its own words") is (said == 3)


def test_a_jobset_of_this_name_that_somebody_made_since_says_nothing_of_ours(
    api: FakeApi, launcher: KubernetesLauncher, job: Job
) -> None:
    name = launcher.submit(job)
    found = api.store.remove(KEY)
    del found["metadata"]["uid"]
    api.put("jobsets", found)
    ended(api)
    assert launcher.status(name).state == "failed" and "is gone" in launcher.status(name).message
    launcher.cancel(name)
    assert KEY in api.store.objects


def test_how_it_ended_is_not_asked_again_once_its_files_were_brought(
    api: FakeApi, launcher: KubernetesLauncher, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which may take long enough for the JobSet to go."""
    name = launcher.submit(job)
    ended(api)
    monkeypatch.setattr(module, "depot", lambda plan: "a bucket")
    monkeypatch.setattr(module, "take_output", lambda *_: api.store.objects.pop(KEY))
    assert launcher.wait(name, 0.2).state == "succeeded"


def test_a_run_that_could_not_be_cancelled_is_said_to_go_on(
    api: FakeApi, launcher: KubernetesLauncher, job: Job
) -> None:
    name = launcher.submit(job)
    refused = answers.forbidden("delete", "jobsets", "jobset.x-k8s.io", "evenkeel")
    api.faults.add(Fault("status", "DELETE", "jobsets", 1, body=refused))
    with pytest.raises(Refused, match="JobSet demo-1 goes on") as error:
        launcher.cancel(name)
    assert "evenkeel cluster cancel demo-1" in str(error.value)
    assert launcher.status(name).state == "pending"


def test_why_a_run_waits_is_reported_where_it_was_submitted(
    api: FakeApi, launcher: KubernetesLauncher, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PROGRESS_VARIABLE, str(tmp_path / "progress"))
    name = launcher.submit(job)
    threading.Timer(0.5, ended, (api,)).start()
    assert launcher.wait(name, poll=0.2).state == "succeeded"
    first = json.loads((tmp_path / "progress").read_text().splitlines()[0])
    assert first["stage"] == "train" and first["remark"].startswith(
        "demo-1: pending: 0 of 3 pods run\nnothing has begun"
    )
