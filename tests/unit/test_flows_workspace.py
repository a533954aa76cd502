"""A run's folder: what it is named after, what is in it, and who may use it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from components.config import Settings, load
from components.errors import InputError
from components.layout import EVALUATIONS_VARIABLE
from flows.host.git import Snapshot, git
from flows.post_training import post_training
from flows.prefect_runtime.states import value
from flows.recording.reproduction import Reproduction
from flows.run.stages import environment
from flows.run.workspace import Workspace, locate
from tests.code_graph import ROOT

DEMO = Path("configs/demo.yaml")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed project with the demo's configuration, code.py and inputs/rows.jsonl; it is the working folder."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / "configs").symlink_to(ROOT / "configs")
    (root / "inputs").mkdir()
    (root / "inputs/rows.jsonl").write_text('{"question": "1+1", "answer": "2"}\n', encoding="utf-8")
    texts = {"dvc.yaml": "stages: {}\n", "code.py": "x = 1\n", ".gitignore": "/runs/\n/.state/\n/.dvc/\n/configs\n"}
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=first")
    monkeypatch.chdir(root)
    return root


def ready(project: Path, *overrides: str) -> Workspace:
    workspace = locate(project, DEMO, overrides)
    with workspace.lock():
        workspace.ensure()
    return workspace


def test_the_same_command_on_the_same_tree_is_the_same_run_and_locating_it_writes_nothing(project: Path) -> None:
    assert locate(project, DEMO).run_id == locate(project, DEMO).run_id
    assert locate(project, DEMO).run_id.startswith("demo-")
    assert not (project / "runs").exists()


def test_another_setting_or_another_tree_is_another_run(project: Path) -> None:
    first, second = locate(project, DEMO), locate(project, DEMO, ["seed=1"])
    (project / "code.py").write_text("x = 2\n", encoding="utf-8")
    third = locate(project, DEMO)
    assert len({first.run_id, second.run_id, third.run_id}) == 3


def test_committing_the_same_tree_keeps_the_run(project: Path) -> None:
    (project / "code.py").write_text("x = 2\n", encoding="utf-8")
    before = ready(project)
    git(project, "commit", "--quiet", "--all", "--message=second")
    after = ready(project)
    assert after.run_id == before.run_id
    assert after.snapshot.commit != before.snapshot.commit


def test_from_a_folder_inside_the_project_the_way_to_its_top_is_said(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "inputs")
    with pytest.raises(InputError, match="top folder") as refused:
        locate(project, DEMO)
    assert refused.value.how == f"cd {project}"


def test_a_workspace_holds_the_code_the_resolved_settings_and_the_shared_cache(project: Path) -> None:
    (project / "code.py").write_text("x = 2\n", encoding="utf-8")
    workspace = ready(project, "train.steps=7")
    assert (workspace.root / "code.py").read_text(encoding="utf-8") == "x = 2\n"
    settings = load(workspace.root / "params.yaml")
    assert settings == workspace.settings
    assert settings.train.steps == 7
    assert str(project / ".dvc/cache") in (workspace.root / ".dvc/config.local").read_text(encoding="utf-8")


def test_the_recorded_commit_cannot_be_collected(project: Path) -> None:
    (project / "code.py").write_text("x = 2\n", encoding="utf-8")
    workspace = ready(project)
    git(project, "gc", "--quiet", "--prune=now")
    assert git(workspace.root, "show", "HEAD:code.py") == "x = 2"
    assert git(project, "rev-parse", f"refs/evenkeel/runs/{workspace.run_id}") == workspace.snapshot.commit


def test_an_earlier_commit_can_be_run_again(project: Path) -> None:
    first = locate(project, DEMO)
    (project / "code.py").write_text("x = 2\n", encoding="utf-8")
    again = locate(project, DEMO, commit=first.snapshot.commit)
    assert again.run_id == first.run_id


def test_what_a_run_wrote_is_kept_when_it_goes_on_and_fresh_starts_from_an_empty_workspace(project: Path) -> None:
    workspace = ready(project)
    (workspace.root / "dvc.lock").write_text("schema: '2.0'\n", encoding="utf-8")
    ready(project)
    assert (workspace.root / "dvc.lock").exists()
    with workspace.lock():
        workspace.ensure(fresh=True)
    assert not (workspace.root / "dvc.lock").exists()


def test_what_a_process_that_was_killed_was_writing_is_no_edit(project: Path) -> None:
    workspace = ready(project)
    for name in ("dvc.lock", "params.yaml", "run.json"):
        (workspace.root / f".{name}.a1b2c3d4").write_text("", encoding="utf-8")
    ready(project)
    (workspace.root / ".another.a1b2c3d4").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="another"):
        ready(project)


@pytest.mark.parametrize("name", ["code.py", "params.yaml"])
def test_a_workspace_that_was_edited_is_refused(project: Path, name: str) -> None:
    workspace = ready(project)
    with (workspace.root / name).open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    with pytest.raises(InputError, match=name):
        ready(project)


def test_the_python_of_the_servers_is_found_from_inside_the_workspace(project: Path) -> None:
    engine = "rollout.engine={kind: vllm, processes: 1, python: env/bin/python}"
    settings = locate(project, DEMO, [engine]).settings.model_dump(mode="json")
    assert settings["rollout"]["engine"]["python"] == str(Path.cwd() / "env/bin/python")


SUITE = "evaluation.suites.mine={kind: file, path: mine.jsonl, format: question_answer}"


@pytest.mark.parametrize(
    ("override", "what", "where"),
    [
        ("data.source={kind: jsonl, path: nowhere.jsonl}", "not found", "nowhere.jsonl"),
        (SUITE, "not a row of format question_answer", "mine.jsonl:2"),
        ("record.git_remote=origin", "no Git remote named 'origin'", "hub"),
    ],
)
def test_what_a_run_could_not_use_is_refused_before_anything_is_made(
    project: Path, override: str, what: str, where: str
) -> None:
    git(project, "remote", "add", "hub", "file:///nowhere")
    (project / "mine.jsonl").write_text('{"question": "2+2", "answer": 4}\n{"question": "3+3"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=what) as refused:
        locate(project, DEMO, [override])
    assert where in str(refused.value)
    assert not (project / "runs").exists()
    assert locate(project, DEMO, ["record.git_remote=hub"]).run_id == locate(project, DEMO).run_id


def test_a_second_process_is_refused_with_the_holder_of_the_run(project: Path) -> None:
    workspace = locate(project, DEMO)
    code = (
        "import sys; from pathlib import Path; from flows.run.workspace import locate\n"
        "with locate(Path.cwd(), Path('configs/demo.yaml')).lock():\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(InputError, match=f"in progress in process {holder.pid}"), workspace.lock():
        pass
    holder.kill()
    holder.communicate()
    with workspace.lock():
        pass


def test_a_flow_waits_for_whoever_runs_the_same_and_says_for_whom(project: Path) -> None:
    workspace, said, order = locate(project, DEMO), [], []

    def wait() -> None:
        with workspace.lock(wait=said.append):
            order.append("second")

    with workspace.lock():
        waiting = threading.Thread(target=wait)
        waiting.start()
        while not said:
            time.sleep(0.01)
        order.append("first")
    waiting.join(10)
    assert order == ["first", "second"]
    assert said[0].startswith(f"{workspace.run_id} waits for process {os.getpid()} (")


def test_a_folder_that_cannot_be_written_is_one_clear_error(project: Path) -> None:
    (project / ".state").write_text("a file where a folder must be", encoding="utf-8")
    with pytest.raises(InputError, match="cannot lock"), locate(project, DEMO).lock():
        pass


def test_a_workspace_appears_whole_or_not_at_all(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flows.run.workspace.write_text", interrupted)
    workspace = locate(project, DEMO)
    with pytest.raises(KeyboardInterrupt), workspace.lock():
        workspace.ensure()
    assert list((project / "runs").iterdir()) == []


def test_a_run_whose_servers_cannot_be_started_is_refused_before_anything_is_made(project: Path) -> None:
    engine = "rollout.engine={kind: vllm, processes: 1, python: /nowhere/python}"
    with pytest.raises(InputError, match="no environment with vLLM") as refused:
        value(post_training.fn(config=str(DEMO), overrides=[engine]))
    assert refused.value.where == "/nowhere/python" and "make vllm-env" in str(refused.value)
    assert not (project / "runs").exists()


SERVED = ("rollout.engine={kind: vllm, urls: ['http://a:8000']}", "learner.kind=fsdp2", "learner.ranks.processes=1")


@pytest.mark.parametrize(
    "changed",
    [
        ("rollout.engine.urls=['http://b:8000', 'http://c:8000']",),
        ("rollout.engine.request_timeout=1200",),
        ("learner.ranks.processes=4", "launch.kind=processes"),
        ("learner.ranks.start_timeout=900",),
        ("launch.kind=processes",),
    ],
)
def test_where_servers_and_ranks_are_may_change_under_way(project: Path, changed: tuple[str, ...]) -> None:
    before = ready(project, *SERVED)
    after = ready(project, *SERVED, *changed)
    assert after.run_id == before.run_id
    assert (after.root / "params.yaml").read_text(encoding="utf-8") == after.params != before.params


@pytest.mark.parametrize(
    "changed", ["rollout.engine.kv_cache_dtype=fp8_e4m3", "learner.kind=deepspeed", "rollout.engine.dtype=bfloat16"]
)
def test_what_a_completion_or_an_update_depends_on_makes_another_run(project: Path, changed: str) -> None:
    other = locate(project, DEMO, (*SERVED, "launch.kind=processes", changed))
    assert other.run_id != locate(project, DEMO, SERVED).run_id


def test_the_runs_of_a_project_share_evaluations_and_a_reproduction_has_its_own(tmp_path: Path) -> None:
    snapshot = Snapshot("c" * 40, "t" * 40, clean=True)
    one, two = (Workspace(tmp_path, name, Settings(), snapshot) for name in ("one", "two"))
    again = Reproduction(tmp_path, "one", Settings(), snapshot)
    folders = [environment(workspace)[EVALUATIONS_VARIABLE] for workspace in (one, two, again)]
    assert folders[0] == folders[1] == str(tmp_path / ".state" / "evaluations")
    assert folders[2] == str(again.root / ".state" / "evaluations")
