"""What is kept of a run: its record, its branch, the push, and that it does not disturb the user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from components.errors import InputError
from components.files import append_line, read_json, write_json, write_text
from flows.cli import runs
from flows.host import branches, dvc
from flows.host.branches import commit_run
from flows.host.dvc_process import one_process
from flows.host.git import git
from flows.recording import RecordingResult, RunRecord, read_record, read_recording, recorded, storing
from flows.recording.record import cpu_model, differences, packages, this_machine
from flows.run.resumption import note_flow_run, reopen, run_of_flow_run
from flows.run.workspace import Workspace, locate
from tests.unit import flows_project
from tests.unit.flows_project import STAGES, command, ready

DIGEST = "d1" * 32


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a store next to it and a finished run, which each test takes a copy of."""
    root = flows_project.build(tmp_path_factory.mktemp("built") / "project")
    (root / "configs").unlink()
    shutil.copytree(flows_project.ROOT / "configs", root / "configs")
    flows_project.add_store(root, "../../store")
    return root


@pytest.fixture
def project(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(built, tmp_path / "project", symlinks=True)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setattr(storing, "wanted", lambda settings: [*STAGES, "never recorded"])
    return tmp_path / "project"


def finish(workspace: Workspace, text: str = "0.5", candidate: str | None = DIGEST) -> RecordingResult:
    """What a pipeline leaves behind, without it, and the end of the run."""
    with recorded(workspace) as recorder:
        write_json(workspace.layout.validation, {"success": True, "rate": float(text), "of": [1, 2]})
        (workspace.root / "out/verdict.md").write_text("# Healthy\n", encoding="utf-8")
        (workspace.root / "out/big.bin").write_text("not for Git", encoding="utf-8")
        lock = f"schema: '2.0'\nstages:\n  data:\n    cmd: x\n    outs:\n    - path: out/data\n      md5: '{text}'\n"
        (workspace.root / "dvc.lock").write_text(lock, encoding="utf-8")
        recorder.conclude(candidate, "" if candidate else "the gate failed")
    return kept_of(workspace)


def record_of(workspace: Workspace) -> RunRecord:
    found = read_record(workspace.root)
    assert found is not None
    return found


def kept_of(workspace: Workspace) -> RecordingResult:
    found = read_recording(workspace.root)
    assert found is not None
    return found


@pytest.fixture
def unpushed(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the branch alone: nothing is there to push."""
    monkeypatch.setattr(storing, "push_outputs", lambda workspace: None)


# The record


def test_a_stage_that_is_off_is_executed_by_the_code_of_the_run(tmp_path: Path) -> None:
    for name in ("__init__", "layout", "stages/dpo"):
        write_text(tmp_path / f"components/{name}.py", "# of an earlier version\n")
    write_text(tmp_path / "components/__main__.py", "import sys\nopen('dpo.json', 'w').write(sys.argv[1])\n")
    workspace: Any = SimpleNamespace(root=tmp_path, project=tmp_path, log=lambda stage: tmp_path / f"{stage}.log")
    storing._write_empty("dpo", workspace)
    assert (tmp_path / "dpo.json").read_text() == "dpo"
    write_text(tmp_path / "components/__main__.py", "raise SystemExit('broken')\n")
    with pytest.raises(InputError, match=r"could not be written: InputError: it ended with exit code 1"):
        storing._write_empty("dpo", workspace)


def test_the_record_says_what_ran_how_it_ended_and_every_number(project: Path, unpushed: None) -> None:
    workspace = ready(project, "seed=3")
    finish(workspace)
    record = record_of(workspace)
    assert record.finished
    taken = workspace.snapshot
    assert (record.run_id, record.commit, record.tree) == (workspace.run_id, taken.commit, taken.tree)
    assert (record.config, record.overrides) == ("configs/demo.yaml", ["seed=3"])
    assert (record.outcome.state, record.outcome.candidate) == ("candidate", DIGEST)
    assert record.metrics == {"validation.rate": 0.5, "validation.of.0": 1, "validation.of.1": 2}
    assert record.digests == {"out/data": "0.5"}
    assert record.began <= str(record.ended)
    assert record.machine.packages.keys() == {"pyyaml"}
    assert read_json(workspace.root / "run.json")["format"] == 1


def test_stages_are_recorded_as_they_were_last_executed(project: Path, unpushed: None) -> None:
    workspace = ready(project)

    def attempt(*stages: tuple[str, str, int]) -> None:
        with suppress(InputError), recorded(workspace) as recorder:
            for stage, state, seconds in stages:
                append_line(workspace.progress, {"stage": stage, "state": "running", "seconds": 0})
                append_line(workspace.progress, {"stage": stage, "done": 1, "total": 2, "note": ""})
                append_line(workspace.progress, {"stage": stage, "state": state, "seconds": seconds})
            if stages[-1][1] == "failed":
                raise InputError("the second stage failed")
            recorder.conclude(DIGEST)

    attempt(("data", "done", 9), ("audit", "failed", 1))
    failed = record_of(workspace)
    assert (failed.outcome.state, failed.outcome.failed_stage) == ("failed", "audit")
    attempt(("data", "cached", 1), ("audit", "done", 5))
    record = record_of(workspace)
    assert {name: (stage.state, stage.seconds) for name, stage in record.stages.items()} == {
        "data": ("done", 9),
        "audit": ("done", 5),
    }


@pytest.mark.parametrize(("error", "state"), [(InputError("no room"), "failed"), (KeyboardInterrupt(), "stopped")])
def test_a_run_that_does_not_come_to_its_end_is_recorded_in_its_workspace_alone(
    project: Path, error: BaseException, state: str
) -> None:
    workspace = ready(project)
    with pytest.raises(type(error)), recorded(workspace):
        assert record_of(workspace).outcome.state == "unfinished"
        raise error
    record = record_of(workspace)
    assert not record.finished
    assert record.outcome.state == state
    assert git(project, "branch", "--list", "runs/*") == ""
    assert read_recording(workspace.root) is None


@pytest.mark.parametrize("text", ['{"strange": 1}', "{"])
def test_a_note_of_an_earlier_recording_that_cannot_be_read_does_not_end_the_run(
    project: Path, unpushed: None, text: str
) -> None:
    workspace = ready(project)
    write_text(workspace.layout.state / storing.RESULT_FILE, text)
    with pytest.raises(InputError):
        read_recording(workspace.root)
    kept = finish(workspace)
    assert (kept.problems, kept.branch) == ([], f"runs/{workspace.run_id}")


def test_a_record_of_another_format_is_refused(project: Path) -> None:
    workspace = ready(project)
    write_json(workspace.root / "run.json", {"format": 2})
    with pytest.raises(InputError, match="not a run's record: format"):
        read_record(workspace.root)


def test_the_machine_is_described_and_compared(tmp_path: Path) -> None:
    (tmp_path / "constraints.txt").write_text("pyyaml==1\nnot-installed==1\n", encoding="utf-8")
    here = this_machine(tmp_path)
    assert list(packages(tmp_path / "constraints.txt")) == ["pyyaml"]
    assert differences(here, here) == []
    elsewhere = here.model_copy(update={"python": "3.1", "packages": {"pyyaml": "1"}})
    assert [line.split(":")[0] for line in differences(elsewhere, here)] == ["python", "pyyaml"]
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name : Fast One\n", encoding="utf-8")
    assert cpu_model(tmp_path / "cpuinfo") == "Fast One"
    assert cpu_model(tmp_path / "nothing")


# The branch


def test_the_branch_holds_the_code_and_what_came_out(project: Path, unpushed: None) -> None:
    workspace = ready(project)
    kept = finish(workspace)
    branch = f"refs/heads/runs/{workspace.run_id}"
    assert (f"refs/heads/{kept.branch}", kept.commit) == (branch, git(project, "rev-parse", branch))
    assert git(project, "rev-parse", f"{branch}^") == workspace.snapshot.commit
    changed = git(project, "diff", "--name-only", f"{branch}^", branch, "--").splitlines()
    assert changed == ["dvc.lock", "out/validation.json", "out/verdict.md", "params.yaml", "run.json"]
    assert git(project, "show", f"{branch}:params.yaml") + "\n" == workspace.params
    assert git(project, "show", "-s", "--format=%an %ae", branch) == "evenkeel evenkeel@localhost"


def test_nothing_new_makes_no_new_commit_and_keeps_the_record(project: Path, unpushed: None) -> None:
    workspace = ready(project)
    first = finish(workspace)
    before = (workspace.root / "run.json").read_bytes()
    assert finish(workspace).commit == first.commit
    assert (workspace.root / "run.json").read_bytes() == before


def test_another_result_is_another_commit_on_the_same_branch(project: Path, unpushed: None) -> None:
    workspace = ready(project)
    first, second = finish(workspace), finish(workspace, "0.75")
    assert git(project, "rev-parse", f"{second.commit}^") == first.commit
    assert git(project, "show", f"runs/{workspace.run_id}:out/validation.json").count("0.75") == 1


def test_index_branch_working_tree_and_hooks_have_no_part_in_it(project: Path, unpushed: None) -> None:
    for name in ("pre-commit", "post-commit", "reference-transaction", "pre-push"):
        hook = project / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{project}/hooked'\n", encoding="utf-8")
    (project / "code.py").write_text("x = 2\n", encoding="utf-8")
    (project / "staged.py").write_text("", encoding="utf-8")
    git(project, "add", "staged.py")
    workspace = ready(project)
    for hook in (project / ".git/hooks").iterdir():
        hook.chmod(0o755)
    queries = (["status", "--porcelain"], ["ls-files", "-s"], ["rev-parse", "HEAD"])
    state = [git(project, *query) for query in queries]
    assert finish(workspace).problems == []
    assert not (project / "hooked").exists()
    assert state == [git(project, *query) for query in queries]
    assert git(project, "show", f"runs/{workspace.run_id}:code.py") == "x = 2"


def test_a_detached_head_does_not_matter(project: Path, unpushed: None) -> None:
    git(project, "checkout", "--quiet", "--detach")
    assert finish(ready(project)).problems == []


def test_a_shallow_clone_records_too(project: Path, tmp_path: Path, unpushed: None) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{project}", "shallow")
    workspace = ready(tmp_path / "shallow")
    assert finish(workspace).problems == []
    assert git(tmp_path / "shallow", "branch", "--list", "runs/*").strip() == f"runs/{workspace.run_id}"


def test_many_runs_that_end_at_once_are_all_recorded_while_git_collects_garbage(project: Path) -> None:
    workspaces = [ready(project, f"seed={seed}") for seed in range(4)]

    def record(workspace: Workspace) -> None:
        for number in range(4):
            (workspace.root / "run.json").write_text(f'{{"run_id": "{workspace.run_id}"}}', encoding="utf-8")
            (workspace.root / "out.txt").write_text(str(number), encoding="utf-8")
            base = workspace.snapshot.commit
            commit_run(project, workspace.run_id, base, workspace.root, ["run.json", "out.txt"])

    with ThreadPoolExecutor(len(workspaces)) as pool:
        recording = [pool.submit(record, workspace) for workspace in workspaces]
        git(project, "gc", "--quiet")
        for one in recording:
            one.result()
    git(project, "fsck", "--no-dangling")
    counts = [git(project, "rev-list", "--count", f"main..runs/{one.run_id}") for one in workspaces]
    assert counts == ["4"] * 4


def test_a_branch_of_the_user_with_that_name_stops_the_run_before_it_begins(project: Path) -> None:
    workspace = ready(project)
    git(project, "branch", f"runs/{workspace.run_id}")
    with pytest.raises(InputError, match="holds something else") as refused:
        ready(project)
    assert "git branch -m" in str(refused.value)


def test_a_branch_that_leaves_no_room_for_runs_is_named(project: Path) -> None:
    git(project, "branch", "runs")
    with pytest.raises(InputError, match="leaves no room"):
        ready(project)


def test_a_branch_taken_while_the_run_worked_costs_no_result(project: Path) -> None:
    workspace = ready(project)
    git(project, "branch", f"runs/{workspace.run_id}")
    kept = finish(workspace)
    assert kept.commit is None
    assert "not recorded: the branch" in kept.problems[0]
    assert record_of(workspace).finished


def test_a_branch_that_somebody_has_checked_out_is_not_moved_under_them(project: Path, unpushed: None) -> None:
    workspace = ready(project)
    first = finish(workspace)
    git(project, "checkout", "--quiet", f"runs/{workspace.run_id}")
    assert "is checked out" in finish(workspace, "0.75").problems[0]
    assert git(project, "rev-parse", "HEAD") == first.commit


def test_on_the_branch_of_a_run_the_same_command_is_the_same_run(project: Path, unpushed: None) -> None:
    (project / "code.py").write_text("x = 2\n", encoding="utf-8")  # the code beneath is a snapshot
    workspace = ready(project)
    first = finish(workspace)
    git(project, "checkout", "--quiet", "--force", f"runs/{workspace.run_id}")
    again = ready(project)
    assert (again.run_id, again.snapshot.commit) == (workspace.run_id, workspace.snapshot.commit)
    assert finish(again) == first


def test_what_begins_on_the_branch_of_a_run_takes_over_the_code_alone(project: Path, unpushed: None) -> None:
    workspace = ready(project)
    finish(workspace)
    git(project, "checkout", "--quiet", f"runs/{workspace.run_id}")
    (project / "code.py").write_text("x = 2\n", encoding="utf-8")
    other = ready(project)
    assert git(other.root, "show", "HEAD:code.py") == "x = 2"
    assert not {"run.json", "dvc.lock", "out"} & {path.name for path in other.root.iterdir()}
    git(project, "commit", "--quiet", "--all", "--message=on top of the results")
    assert ready(project).run_id == other.run_id
    assert locate(project, flows_project.DEMO, commit="HEAD").run_id == other.run_id
    finish(other)
    assert record_of(other).run_id == other.run_id
    assert reopen(project, other.run_id).run_id == other.run_id


def test_the_record_of_another_run_is_none(project: Path) -> None:
    workspace = ready(project)
    with suppress(InputError), recorded(workspace):
        raise InputError("no room")
    shutil.copy(workspace.root / "run.json", project / "run.json")
    assert read_record(project) is None


def test_the_branch_of_a_refused_run_has_its_report(project: Path, unpushed: None) -> None:
    workspace = ready(project)
    workspace.layout.report.parent.mkdir(exist_ok=True)
    workspace.layout.report.write_text("<p>refused</p>", encoding="utf-8")
    finish(workspace, candidate=None)
    branch = f"runs/{workspace.run_id}"
    assert git(project, "show", f"{branch}:out/refusal.html") == "<p>refused</p>"
    assert "out/report.html" not in git(project, "ls-tree", "-r", "--name-only", branch).splitlines()


# The push


@pytest.fixture
def executed(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A run that DVC really executed, with an input from elsewhere."""
    monkeypatch.setattr(storing, "wanted", lambda settings: [*STAGES, "never recorded"])
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "rows.jsonl").write_text('{"question": "2+2", "answer": "4"}\n', encoding="utf-8")
    workspace = ready(project, f"data.source={{kind: jsonl, path: {folder}/rows.jsonl}}")
    with one_process(workspace.root):
        flows_project.run_line(workspace)
        yield workspace


def end(workspace: Workspace) -> RecordingResult:
    with recorded(workspace) as recorder:
        recorder.conclude(DIGEST)
    return kept_of(workspace)


def stored(tmp_path: Path) -> set[str]:
    """The MD5s in the store."""
    return {"".join(path.parts[-2:]) for path in (tmp_path / "store").rglob("*") if path.is_file()}


def test_outputs_and_inputs_are_pushed_and_the_input_is_known_by_its_digest(
    executed: Workspace, tmp_path: Path
) -> None:
    kept = end(executed)
    assert (kept.problems, kept.dvc_remote) == ([], "store")
    record = record_of(executed)
    cached = {record.digests[name] for name in ("out/data", "out/audit.html")}
    assert cached <= stored(tmp_path)
    assert len(stored(tmp_path)) == 4  # the folder's list and its file, the page, the input
    (given,) = executed.inputs
    pointer = git(executed.project, "show", f"{kept.branch}:{given.pointer}")
    assert pointer.splitlines()[-1].strip() == "path: rows.jsonl"
    assert (executed.root / given.path).is_symlink(), "still a link, not a copy"
    assert not (executed.root / ".state/inputs").exists()


@pytest.mark.slow
def test_a_push_that_fails_costs_no_result_and_is_made_up_for_later(executed: Workspace, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where a folder must be", encoding="utf-8")
    kept = end(executed)
    assert kept.commit is not None
    assert "outputs were not pushed: dvc push" in kept.problems[0]
    assert f"evenkeel run --resume {executed.run_id}" in kept.problems[0]
    (tmp_path / "store").unlink()
    again = end(executed)
    assert (again.problems, again.dvc_remote, again.commit) == ([], "store", kept.commit)


def test_without_a_remote_it_is_said_and_nothing_fails(project: Path) -> None:
    (project / ".dvc/config").write_text("[core]\n    analytics = false\n", encoding="utf-8")
    kept = finish(ready(project))
    assert kept.problems == []
    assert "no DVC remote" in kept.notes[0]


def test_what_was_pushed_is_not_pushed_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pushes: list[str] = []
    monkeypatch.setattr(storing, "push_outputs", lambda workspace: pushes.append(workspace.run_id))
    workspace = ready(project)
    finish(workspace)
    finish(workspace)
    assert len(pushes) == 1
    finish(workspace, "0.75")
    assert len(pushes) == 2


def test_pushing_can_be_switched_off(project: Path) -> None:
    kept = finish(ready(project, "record.push=false"))
    assert (kept.dvc_remote, kept.problems) == (None, [])


def test_the_branch_is_pushed_to_the_named_git_remote(project: Path, tmp_path: Path, unpushed: None) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "hub.git")
    git(project, "remote", "add", "hub", f"file://{tmp_path}/hub.git")
    kept = finish(ready(project, "record.git_remote=hub"))
    assert (kept.problems, kept.git_remote) == ([], "hub")
    assert git(tmp_path / "hub.git", "rev-parse", str(kept.branch)) == kept.commit


def test_a_git_remote_that_cannot_be_reached_is_a_note_with_the_way_out(project: Path, unpushed: None) -> None:
    git(project, "remote", "add", "hub", "file:///nowhere/hub.git")
    kept = finish(ready(project, "record.git_remote=hub"))
    assert kept.commit is not None and kept.git_remote is None
    assert "the branch was not pushed to hub" in kept.problems[0]


# A full disk


def test_a_push_over_ssh_asks_for_no_password_and_does_not_wait_for_ever(
    project: Path, tmp_path: Path, unpushed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin/ssh"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nexec sleep 20\n', encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=os.pathsep)
    monkeypatch.setattr(branches, "PUSH_SECONDS", 1.0)
    git(project, "remote", "add", "hub", "ssh://user@nowhere/hub.git")
    (problem,) = finish(ready(project, "record.git_remote=hub")).problems
    assert "git push: no answer in 1 s" in problem
    assert "BatchMode=yes" in (tmp_path / "asked").read_text(encoding="utf-8")


@contextmanager
def full(disk: Path) -> Iterator[None]:
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(1024)):
            pass
    yield
    ballast.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(disk)], capture_output=True).returncode:
        pytest.skip("this machine mounts nothing")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_on_a_full_disk_the_result_stays_and_the_record_is_made_up_for(
    built: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch, unpushed: None
) -> None:
    shutil.copytree(built, small_disk / "project", symlinks=True)
    monkeypatch.chdir(small_disk / "project")
    monkeypatch.setattr(storing, "wanted", lambda settings: [*STAGES, "never recorded"])
    workspace = ready(small_disk / "project")
    finish(workspace)
    (workspace.root / "run.json").unlink()
    with recorded(workspace) as recorder:
        recorder.conclude(DIGEST)
        disk = full(small_disk)
        disk.__enter__()
    disk.__exit__(None, None, None)
    assert recorder.result is not None
    assert "No space left on device" in recorder.result.problems[0]
    with recorded(workspace) as recorder:
        recorder.conclude(DIGEST)
    assert kept_of(workspace).problems == []
    assert record_of(workspace).finished


# Going on


def test_a_run_is_reopened_with_its_own_settings_and_code(project: Path) -> None:
    before = ready(project, "seed=5")
    with pytest.raises(KeyboardInterrupt), recorded(before):
        raise KeyboardInterrupt
    (project / "code.py").write_text("x = 3\n", encoding="utf-8")
    for name in (before.run_id, before.run_id[:-3]):
        after = reopen(project, name)
        assert (after.run_id, after.settings, after.request) == (before.run_id, before.settings, before.request)
        assert after.snapshot.commit == before.snapshot.commit
    with after.lock():
        after.ensure()


def test_limits_and_places_may_change_when_a_run_goes_on_and_nothing_else(project: Path) -> None:
    before = ready(project, "seed=5", "budget.hours=1")
    after = reopen(project, before.run_id, ["budget.hours=2", "record.tolerance=0.1"])
    assert (after.run_id, after.settings.budget.hours) == (before.run_id, 2)
    with after.lock():
        after.ensure()
    assert reopen(project, before.run_id).settings.budget.hours == 2
    with pytest.raises(InputError, match="this is another run: seed=6"):
        reopen(project, before.run_id, ["seed=6"])


def test_a_retry_goes_on_with_what_its_flow_run_began(project: Path) -> None:
    workspace, other = ready(project, "seed=5"), ready(project, "seed=6")
    assert run_of_flow_run(project, "flow-run-1") == run_of_flow_run(project, None) == ""
    note_flow_run(project, "flow-run-1", workspace.run_id)
    note_flow_run(project, "flow-run-2", other.run_id)
    with pytest.raises(InputError), recorded(workspace, "flow-run-of-a-person-who-touched-it"):
        raise InputError("a stage failed")
    (project / "code.py").write_text("x = 4\n", encoding="utf-8")
    assert run_of_flow_run(project, "flow-run-1") == workspace.run_id
    shutil.rmtree(workspace.root)
    assert run_of_flow_run(project, "flow-run-1") == "", "there is nothing left to go on with"
    assert run_of_flow_run(project, "flow-run-2") == other.run_id


def test_an_unknown_run_lists_those_that_can_be_resumed(project: Path, unpushed: None) -> None:
    stopped, finished = ready(project, "seed=5"), ready(project, "seed=6")
    with pytest.raises(KeyboardInterrupt), recorded(stopped):
        raise KeyboardInterrupt
    finish(finished)
    with pytest.raises(InputError, match="no run named 'nothing'") as refused:
        reopen(project, "nothing")
    assert f"{stopped.run_id}  stopped, " in str(refused.value)
    assert finished.run_id not in str(refused.value)


def test_a_run_whose_workspace_is_gone_can_be_reproduced(project: Path, unpushed: None) -> None:
    workspace = ready(project)
    finish(workspace)
    shutil.rmtree(workspace.root)
    with pytest.raises(InputError, match="is gone, but its branch is there") as refused:
        reopen(project, workspace.run_id)
    assert f"evenkeel reproduce {workspace.run_id}" in str(refused.value)


def test_settings_that_somebody_edited_are_not_taken_for_the_run_s_own(project: Path) -> None:
    workspace = ready(project)
    params = workspace.root / "params.yaml"
    params.write_text(params.read_text(encoding="utf-8").replace("seed: 0", "seed: 1", 1), encoding="utf-8")
    with pytest.raises(InputError, match="were edited"):
        reopen(project, workspace.run_id)


def test_a_finished_run_says_so_and_ends_with_the_same_words(
    project: Path, unpushed: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    proposed, refused = ready(project, "seed=1"), ready(project, "seed=2")
    kept = finish(proposed)
    finish(refused, candidate=None)
    again: list[str] = []
    monkeypatch.setattr(runs, "propose_run", lambda workspace, warn: again.append(workspace.run_id))
    monkeypatch.setattr(runs, "changed_outputs", lambda root: [])
    assert command(monkeypatch, "run", "--resume", proposed.run_id) == 0
    said = capsys.readouterr().out
    assert f"{proposed.run_id} came to its end on " in said
    assert f"recorded   branch runs/{proposed.run_id}, commit {str(kept.commit)[:12]}" in said
    assert "awaiting approval" in said
    assert command(monkeypatch, "run", "--resume", refused.run_id) == 3
    assert "the gate failed" in capsys.readouterr().out
    assert again == [proposed.run_id]  # what has no candidate is not proposed


def test_a_tolerance_that_is_named_later_is_that_of_the_record(
    project: Path, unpushed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = ready(project)
    finish(workspace, candidate=None)
    monkeypatch.setattr(runs, "changed_outputs", lambda root: [])
    assert command(monkeypatch, "run", "--resume", workspace.run_id, "--set", "record.tolerance=0.5") == 3
    assert json.loads(git(project, "show", f"runs/{workspace.run_id}:run.json"))["tolerance"] == 0.5


def test_what_resuming_would_leave_out_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ready(project)
    assert command(monkeypatch, "run", "--resume", "demo", "--fresh", "--recipe", "dapo") == 2
    assert "without --recipe, --fresh" in capsys.readouterr().err


# A lock that DVC holds


def test_a_list_of_readers_that_a_kill_left_torn_is_removed_and_a_whole_one_kept(tmp_path: Path) -> None:
    path = tmp_path / ".dvc/tmp/rwlock"
    dvc.repair_rwlock(tmp_path)
    for torn in ("", '{"write": {"out'):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(torn, encoding="utf-8")
        dvc.repair_rwlock(tmp_path)
        assert not path.exists()
    write_json(path, {"write": {}, "read": {}})
    dvc.repair_rwlock(tmp_path)
    assert path.exists()


def test_the_holder_of_a_lock_is_named_while_it_lives(tmp_path: Path) -> None:
    (tmp_path / ".dvc/tmp").mkdir(parents=True)
    assert dvc.holder(tmp_path) is None
    write_json(tmp_path / ".dvc/tmp/rwlock", {"write": {"out": {"pid": os.getpid(), "cmd": "dvc repro"}}})
    assert str(dvc.holder(tmp_path)).startswith(f"process {os.getpid()} (")
    write_json(tmp_path / ".dvc/tmp/rwlock", {"write": {"out": {"pid": 2**22 + 1, "cmd": "dvc repro"}}})
    assert dvc.holder(tmp_path) is None


@pytest.mark.slow
def test_a_stage_waits_for_whoever_uses_dvc_in_its_workspace_and_says_for_whom(project: Path) -> None:
    workspace = ready(project)
    lock = workspace.root / ".dvc/tmp/lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    take = f"held = zc.lockfile.LockFile({str(lock)!r})"
    code = f"import zc.lockfile, sys; {take}; print('held', flush=True); sys.stdin.read()"
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdin is not None
    assert holder.stdout.readline() == b"held\n"
    line = threading.Thread(target=flows_project.run_line, args=[workspace])
    line.start()
    while not workspace.progress.exists() or "waits for" not in workspace.progress.read_text(encoding="utf-8"):
        assert line.is_alive()
    assert f"process {holder.pid} (" in workspace.progress.read_text(encoding="utf-8")
    holder.communicate()
    line.join(60)
    assert workspace.layout.audit.exists()


def test_a_lock_that_a_dead_process_left_is_no_obstacle(project: Path) -> None:
    workspace = ready(project)
    entry = {"pid": 2**22 + 1, "cmd": "dvc repro"}
    path = str(workspace.root / "out/data")
    write_json(workspace.root / ".dvc/tmp/rwlock", {"write": {path: entry}, "read": {path: [entry]}})
    (workspace.root / ".dvc/tmp/lock").write_text(f" {2**22 + 1}\n", encoding="utf-8")
    flows_project.run_line(workspace)
    assert workspace.layout.audit.exists()
