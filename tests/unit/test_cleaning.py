"""The janitor: what dead runs left goes, what lives stays."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
import test_watching_runs

from components.config import dump, load
from components.directories import write_directory
from components.errors import InputError
from components.files import read_json, write_json, write_text
from components.pods.depot import Depot, forget
from components.processes import free_port
from components.processes.living import claim
from flows.cleaning import cleanup, leftovers
from flows.cleaning.cleanup import remove_old
from flows.cleaning.leftovers import CleanupAction, end_leftovers, remove_partial, remove_weights
from flows.host.git import git
from flows.host.processes import OWNER_VARIABLE
from flows.watching.execution import Execution
from flows.watching.runs import RunView, all_runs
from tests.s3_server import BUCKET, S3Server

DEMO = dump(load(Path("configs/demo.yaml")))
HOURS = 3600.0
SLEEPER = "import time; time.sleep(60)"


@pytest.fixture(autouse=True)
def _ground_of_our_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that other tests killed leave weights where everybody's temporary files are."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("ground")))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path


def ran(project: Path, run_id: str, **changes: Any) -> RunView:
    """A run that was refused a month ago, but for what ``changes`` say."""
    month_ago = datetime.now(UTC) - timedelta(days=30)
    times = [(month_ago + timedelta(minutes=minutes)).isoformat(timespec="seconds") for minutes in (0, 5)]
    refused = {"state": "refused", "candidate": None, "began": times[0], "ended": times[1]}
    return test_watching_runs.ran(project, run_id, **refused | changes)


LIVING: dict[str, Any] = {"state": "running", "ended": None}
DEAD: dict[str, Any] = {**LIVING, "created": 1.0}


def old(path: Path, hours: float = 2) -> Path:
    """Make it and all in it look as if unchanged for so long."""
    then = time.time() - hours * HOURS
    for one in [*path.rglob("*"), path]:
        os.utime(one, (then, then))
    return path


def half_made(target: Path, suffix: str = "abcd_123", hours: float = 2) -> Path:
    """What a killed `write_directory` of ``target`` leaves."""
    folder = target.parent / f".{target.name}.{suffix}"
    (folder / "part").mkdir(parents=True)
    (folder / "part/weights").write_bytes(b"half")
    return old(folder, hours)


def cleaned(project: Path) -> list[str]:
    return [action.what for action in remove_partial(project, all_runs(project))]


# processes


def child_of(owner: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SLEEPER], env={OWNER_VARIABLE: owner})


@pytest.fixture
def family(project: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """A process of a dead run, one of this process, and one of a dead run of another project."""
    me = psutil.Process()
    found = {
        "dead": child_of(f"{me.pid}:{me.create_time() - 1000:.0f}:{project}"),
        "living": child_of(f"{me.pid}:{me.create_time():.0f}:{project}"),
        "elsewhere": child_of(f"{me.pid}:{me.create_time() - 1000:.0f}:{project}-other"),
    }
    give_up = time.monotonic() + 10
    while not all(OWNER_VARIABLE in psutil.Process(one.pid).environ() for one in found.values()):
        assert time.monotonic() < give_up
    yield found
    for one in found.values():
        one.kill()
        one.wait()


def test_only_processes_whose_run_is_gone_are_ended(
    project: Path, family: dict[str, subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(OWNER_VARIABLE, raising=False)
    (action,) = end_leftovers(project, grace=0.1)
    assert action.what.startswith(f"{family['dead'].pid} ")
    assert [name for name, one in family.items() if one.poll() is None] == ["living", "elsewhere"]
    assert OWNER_VARIABLE not in os.environ, "the janitor owns nothing"


def test_a_process_that_ends_by_itself_after_its_run_is_given_the_time(project: Path) -> None:
    me = psutil.Process()
    mark = f"{me.pid}:{me.create_time() - 1000:.0f}:{project}"
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.5)"], env={OWNER_VARIABLE: mark})
    threading.Thread(target=child.wait).start()
    assert list(end_leftovers(project, grace=2)) == []


# folders


def test_half_made_folders_and_files_of_killed_writers_go(project: Path) -> None:
    run = ran(project, "demo-1")
    made = [
        half_made(project / "runs/demo-2"),
        half_made(project / "registry/checkpoints/abc"),
        half_made(run.layout.train),
        half_made(run.layout.state / "train/step-000010"),
    ]
    file = run.layout.out / ".gate.json.x_y_z_12"
    write_text(file, "{")
    made.append(old(file))
    assert sorted(cleaned(project)) == sorted(str(path.relative_to(project)) for path in made)
    assert not any(path.exists() for path in made)
    assert cleaned(project) == []


def test_what_somebody_may_still_be_writing_stays(project: Path) -> None:
    living, ended = ran(project, "living-1", **LIVING), ran(project, "demo-1")
    young = half_made(ended.layout.train, hours=0.5)
    grows = half_made(ended.layout.sft)
    (grows / "part/new").write_bytes(b"just now")
    of_living = half_made(living.layout.train, hours=100)
    assert cleaned(project) == []
    assert young.exists() and grows.exists() and of_living.exists()


def test_what_has_another_name_stays_however_old(project: Path) -> None:
    run = ran(project, "demo-1")
    kept = [run.root / ".git/x", run.root / ".dvc/config", run.layout.out / "train/x", project / ".state/.hidden"]
    kept += [project / "runs/.gitignore", project / ".demo.abcdefgh/x", run.layout.state / "train/.step.old"]
    for path in kept:
        write_text(path, "")
        old(path.parent)
    old(project / "runs/.gitignore")
    assert cleaned(project) == []
    assert all(path.exists() for path in kept)


def test_the_only_copy_of_a_folder_that_was_being_replaced_stays(project: Path) -> None:
    run = ran(project, "demo-1")
    only = half_made(run.layout.train, "abcd1234.old")
    assert cleaned(project) == []
    run.layout.train.mkdir()
    assert cleaned(project) == [str(only.relative_to(project))]
    assert run.layout.train.exists()


def test_a_link_is_removed_and_not_what_it_leads_to(project: Path, tmp_path: Path) -> None:
    run = ran(project, "demo-1")
    treasure = tmp_path / "treasure"
    write_text(treasure / "file", "gold")
    old(treasure)
    run.layout.out.mkdir()
    link = run.layout.out / ".train.abcdefgh"
    link.symlink_to(treasure)
    os.utime(link, (1, 1), follow_symlinks=False)
    assert cleaned(project) == [str(link.relative_to(project))]
    assert (treasure / "file").read_text(encoding="utf-8") == "gold"


def test_what_a_janitor_that_was_killed_left_goes_too(project: Path) -> None:
    left = project / "runs/.removed-demo-1"
    write_text(left / "x", "")
    old(left)
    assert cleaned(project) == ["runs/.removed-demo-1"]


def test_concurrent_janitors_and_writers_do_no_harm(project: Path) -> None:
    run = ran(project, "demo-1")
    failed: list[BaseException] = []
    over = threading.Event()

    def guarded(body: Any) -> None:
        try:
            while not over.is_set():
                body()
        except BaseException as error:
            failed.append(error)

    def writer() -> None:
        half_made(run.layout.train, suffix=f"{time.monotonic_ns() % 10**8:08d}")
        write_directory(run.layout.train, lambda folder: write_text(folder / "x", "whole"))

    def janitor() -> None:
        list(remove_partial(project, all_runs(project)))

    threads = [threading.Thread(target=guarded, args=(body,)) for body in (writer, janitor, janitor)]
    for thread in threads:
        thread.start()
    time.sleep(0.7)
    over.set()
    for thread in threads:
        thread.join()
    assert failed == []
    assert (run.layout.train / "x").read_text(encoding="utf-8") == "whole"


def dead_owner(folder: Path) -> Path:
    claim(folder)
    owner = json.loads((folder / "owner.json").read_text(encoding="utf-8"))
    write_json(folder / "owner.json", owner | {"created": 1.0})
    return folder


def test_weights_for_servers_go_when_their_run_is_gone(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, temporary = tmp_path / "memory", tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    engine = f"rollout.engine={json.dumps({'kind': 'vllm', 'processes': 1, 'folder': str(memory)})}"
    ran(project, "demo-1")
    write_text(project / "runs/demo-1/params.yaml", dump(load(Path("configs/demo.yaml"), [engine])))
    gone = [dead_owner(memory / "evenkeel-0001"), dead_owner(temporary / "evenkeel-x")]
    kept = [memory / "evenkeel-0002", memory / "evenkeel-0003", memory / "somebody"]
    claim(kept[0])
    kept[1].mkdir()  # says nothing of its owner
    dead_owner(kept[2])
    elsewhere = dead_owner(memory / "evenkeel-0004")
    owner = json.loads((elsewhere / "owner.json").read_text(encoding="utf-8"))
    write_json(elsewhere / "owner.json", owner | {"host": "elsewhere"})
    assert sorted(action.what for action in remove_weights(all_runs(project))) == sorted(map(str, gone))
    assert all(path.exists() for path in (*kept, elsewhere))


# flow runs


def state(kind: str, seconds_after_began: float, execution: Execution) -> dict[str, Any]:
    since = datetime.fromisoformat(execution.began) + timedelta(seconds=seconds_after_began)
    return {"type": kind, "name": kind.title(), "timestamp": since.isoformat()}


@pytest.mark.parametrize(
    ("kind", "after", "wanted"),
    [
        ("RUNNING", -3, "CRASHED"),
        ("PENDING", -3, "CRASHED"),
        ("RUNNING", 60, None),  # a retry that has not come to its workspace yet
        ("PENDING", 60, None),
        ("CANCELLING", 60, "CANCELLED"),
        ("COMPLETED", -3, None),
        ("SCHEDULED", 60, None),
    ],
)
def test_a_flow_run_is_settled_unless_another_process_may_have_started_it_again(
    project: Path, kind: str, after: float, wanted: str | None
) -> None:
    execution = ran(project, "demo-1", **DEAD).execution
    assert execution is not None
    found = leftovers.target_state(execution, state(kind, after, execution))
    assert (found["type"] if found else None) == wanted


def test_a_worker_that_is_cancelling_right_now_is_given_its_time(project: Path) -> None:
    execution = ran(project, "demo-1", **DEAD).execution
    assert execution is not None
    now = {"type": "CANCELLING", "name": "Cancelling", "timestamp": datetime.now(UTC).isoformat()}
    assert leftovers.target_state(execution, now) is None


def test_a_server_that_does_not_answer_is_said_once(project: Path) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}/api"
    for name in ("demo-1", "demo-2"):
        ran(project, name, **DEAD, flow_run="f10", api=nowhere)
    (action,) = leftovers.close_dead(all_runs(project), None)
    assert action == CleanupAction("server", nowhere, "left alone", "it does not answer (ConnectError)")


def test_no_server_is_queried_about_runs_that_live_or_ended_or_are_elsewhere(project: Path) -> None:
    asked: dict[str, Any] = {"flow_run": "f10", "api": "http://127.0.0.1:9/api"}
    ran(project, "living-1", **LIVING, **asked)
    ran(project, "ended-1", **asked)
    ran(project, "elsewhere-1", **DEAD | {"host": "elsewhere"}, **asked)
    assert list(leftovers.close_dead(all_runs(project), None)) == []


# workspaces


@pytest.fixture
def repository(project: Path) -> Path:
    git(project, "init", "--quiet", "--initial-branch=main")
    git(project, "commit", "--quiet", "--allow-empty", "--message=first")
    return project


def recorded(project: Path, run_id: str, **changes: Any) -> RunView:
    """A run whose record is on its branch."""
    run = ran(project, run_id, **changes)
    record = {"run_id": run_id, "digests": {"out/gate.json": "d1e5"}, "outcome": {"state": "no candidate"}}
    write_json(run.root / "run.json", record | {"ended": "then"})
    scratch = project / "scratch"
    git(project, "worktree", "add", "--quiet", "-b", f"runs/{run_id}", str(scratch))
    shutil.copy(run.root / "run.json", scratch)
    git(scratch, "add", "run.json")
    git(scratch, "commit", "--quiet", "--message=record")
    git(project, "worktree", "remove", "--force", str(scratch))
    return run


def removed(project: Path, days: int = 7) -> dict[str, str]:
    return {action.what: action.done for action in remove_old(project, all_runs(project), days)}


def test_an_old_workspace_goes_when_its_branch_holds_its_record(repository: Path) -> None:
    run = recorded(repository, "demo-1")
    young = recorded(repository, "young-1", ended=datetime.now(UTC).isoformat())
    assert removed(repository) == {"demo-1": "removed"}
    assert not run.root.exists()
    assert young.root.exists()


@pytest.mark.parametrize(
    "changes",
    [LIVING, DEAD, {"state": "failed"}, {"state": "stopped"}, {"state": "candidate", "candidate": "d1e5" * 16}],
    ids=["living", "dead", "failed", "stopped", "candidate"],
)
def test_a_workspace_that_somebody_still_needs_stays(repository: Path, changes: dict[str, Any]) -> None:
    run = recorded(repository, "demo-1", **changes)
    assert removed(repository) == {}
    assert run.root.exists()


def test_a_workspace_whose_record_is_nowhere_else_stays_and_that_is_said(repository: Path) -> None:
    ran(repository, "bare-1")
    newer = recorded(repository, "newer-1")
    record = read_json(newer.root / "run.json")
    write_json(newer.root / "run.json", record | {"digests": {}})
    assert removed(repository) == {"bare-1": "kept", "newer-1": "kept"}
    write_json(newer.root / "run.json", record | {"ended": "now, when nothing else came out"})
    assert removed(repository) == {"bare-1": "kept", "newer-1": "removed"}


IN_BUCKET = (
    "launch.kubernetes.namespace=team",
    f"launch.kubernetes.shared={{kind: s3, uri: 's3://{BUCKET}/janitor'}}",
    "rollout.engine.transfer=broadcast",
)


def test_what_its_pods_shared_in_a_bucket_goes_with_a_workspace(
    repository: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = recorded(repository, "demo-1")
    write_text(run.root / "params.yaml", dump(load(Path("configs/kubernetes.yaml"), IN_BUCKET)))
    depots = [Depot(f"s3://{BUCKET}/janitor/team/{name}/train", s3_server.url) for name in ("demo-1", "demo-2")]
    for depot in depots:
        depot.bucket("output").call("put_object", "blobs/one", Body=b"weights")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "not an address")
    assert removed(repository) == {"demo-1": "kept"}
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3_server.url)
    actions = list(remove_old(repository, all_runs(repository), 7))
    assert [(action.kind, action.done) for action in actions] == [("bucket", "removed"), ("workspace", "removed")]
    assert [forget(depot) for depot in depots] == [0, 1]


def test_a_workspace_with_settings_of_an_older_version_goes(repository: Path) -> None:
    run = recorded(repository, "demo-1")
    write_text(run.root / "params.yaml", f"{DEMO}no_longer: 1\n")
    assert removed(repository) == {"demo-1": "removed"}


def test_a_workspace_that_a_run_holds_stays_whatever_its_record_says(repository: Path) -> None:
    run = recorded(repository, "demo-1")
    path = repository / ".state/locks/demo-1"
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert removed(repository) == {}
    assert run.root.exists()
    assert removed(repository) == {"demo-1": "removed"}


# all of it


def test_by_default_workspaces_are_kept(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "GRACE", 0.0)
    run = recorded(repository, "demo-1")
    assert cleanup.clean(repository, 0, None) == []
    assert run.root.exists()
    assert [action.kind for action in cleanup.clean(repository, 1, None)] == ["workspace"]


def test_a_project_without_runs_has_nothing_to_clean(tmp_path: Path) -> None:
    assert cleanup.clean(tmp_path, 1, None) == []


def test_names_of_writers_are_those_that_are_looked_for(tmp_path: Path) -> None:
    """Held to what `components.files` does."""
    seen: list[str] = []
    write_directory(tmp_path / "target", lambda folder: seen.append(folder.name))
    assert leftovers.TEMPORARY.fullmatch(seen[0])
    handle, name = tempfile.mkstemp(dir=tmp_path, prefix=".gate.json.")
    os.close(handle)
    assert leftovers.TEMPORARY.fullmatch(Path(name).name)


# JobSets


class Cluster:
    """A cluster with a JobSet of each of these runs."""

    def __init__(self, project: Path, runs: list[str]) -> None:
        self.deleted: list[str] = []
        ours = {"app.kubernetes.io/name": "evenkeel", "app.kubernetes.io/managed-by": "evenkeel"}
        self.found: list[dict[str, Any]] = []
        for run in runs:
            named = {"name": run, "uid": run, "labels": {**ours, "evenkeel/run": run}}
            place = {"annotations": {"evenkeel/workspace": str(project / "runs" / run)}}
            self.found.append({"metadata": {**named, **place}})

    def jobsets(self, selector: str) -> list[dict[str, Any]]:
        return self.found

    def delete_jobset(self, name: str, uid: str | None = None) -> None:
        self.deleted.append(name)


def test_jobsets_go_whose_run_is_known_to_be_over(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(project, "living-1", **LIVING)
    ran(project, "far-1", **LIVING, host="elsewhere")
    ran(project, "dead-1", **DEAD)
    ran(project, "done-1")
    cluster = Cluster(project, ["living-1", "far-1", "dead-1", "done-1", "somebodys-1"])
    monkeypatch.setattr("components.launch.kubernetes.api.Cluster.connect", lambda namespace: cluster)
    actions = list(leftovers.remove_orphans(project, "evenkeel"))
    assert cluster.deleted == [action.what for action in actions] == ["dead-1", "done-1"]
    assert {(action.kind, action.done) for action in actions} == {("jobset", "deleted")}


def test_the_jobset_of_somebody_elses_run_of_the_same_name_stays(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(project, "dead-1", **DEAD)
    cluster = Cluster(tmp_path / "another" / "project", ["dead-1"])
    monkeypatch.setattr("components.launch.kubernetes.api.Cluster.connect", lambda namespace: cluster)
    assert list(leftovers.remove_orphans(project, "evenkeel")) == []
    assert cluster.deleted == []


def test_a_cluster_that_is_unreachable_is_reported_and_stops_nothing_else(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(namespace: str) -> None:
        raise InputError("no cluster is configured")

    monkeypatch.setattr("components.launch.kubernetes.api.Cluster.connect", refuse)
    monkeypatch.setattr(
        cleanup.approval_requests, "settle_requests", lambda *_: [CleanupAction("candidate", "x", "asked", "y")]
    )
    monkeypatch.setattr(cleanup.leftovers, "end_leftovers", lambda _: [])
    actions = cleanup.clean(project, 0, None, "evenkeel")
    assert [(action.kind, action.why) for action in actions] == [
        ("cluster", "no cluster is configured"),
        ("candidate", "y"),
    ]
