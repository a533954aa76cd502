"""A recorded run executed again: found by its branch, compared with its record."""

from __future__ import annotations

import json
import shutil
from dataclasses import astuple
from pathlib import Path

import pytest

from components.errors import InputError
from components.files import read_json
from flows.cli import nightly
from flows.host.dvc_process import one_process
from flows.host.git import git
from flows.recording import recorded, reproduction, storing
from flows.recording.reproduction import agree, checked_out, find_branch, reproduce_run
from flows.run.workspace import Workspace
from tests.unit import flows_project
from tests.unit.flows_project import STAGES, command, ready


@pytest.fixture(autouse=True)
def _two_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (storing, reproduction, nightly):
        monkeypatch.setattr(module, "wanted", lambda settings: list(STAGES))
    monkeypatch.setattr(storing, "OPTIONAL", {})


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a project, its store, a hub that has all its branches, and an input that is not there any more."""
    home = tmp_path_factory.mktemp("original")
    project = flows_project.build(home / "project")
    flows_project.add_store(project, str(home / "store"))
    git(home, "init", "--quiet", "--bare", "--initial-branch=main", "hub.git")
    git(project, "remote", "add", "hub", f"file://{home}/hub.git")
    git(project, "push", "--quiet", "hub", "main")
    (home / "given").mkdir()
    (home / "given/rows.jsonl").write_text('{"question": "2+2", "answer": "4"}\n', encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        patch.setattr(storing, "OPTIONAL", {})
        patch.setattr(storing, "wanted", lambda settings: list(STAGES))
        source = f"data.source={{kind: arrow, path: {home}/given}}"
        for more in ((), ("seed=7", "record.tolerance=0.5", "budget.hours=0.5")):
            workspace = ready(project, source, "record.git_remote=hub", *more)
            with one_process(workspace.root), recorded(workspace) as recorder:
                flows_project.run_line(workspace)
                recorder.conclude("d1" * 32)
            assert recorder.result is not None and recorder.result.problems == []
    shutil.rmtree(home / "given")
    return home


@pytest.fixture
def elsewhere(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh clone in another folder, with a cache of its own."""
    git(tmp_path, "clone", "--quiet", f"file://{original}/hub.git", "clone")
    monkeypatch.chdir(tmp_path / "clone")
    return tmp_path / "clone"


def runs(project: Path) -> dict[bool, str]:
    """Whether a run has a tolerance -> its id."""
    refs = git(project, "for-each-ref", "--format=%(refname)", "refs/heads/runs", "refs/remotes").splitlines()
    found = {}
    for ref in refs:
        if "/runs/" in ref:
            record = json.loads(git(project, "show", f"{ref}:run.json"))
            found[bool(record["tolerance"])] = str(record["run_id"])
    return found


def change(clone: Path, run_id: str, name: str, old: str, new: str) -> None:
    """Commit another content of one file onto the branch of a run."""
    git(clone, "switch", "--quiet", f"runs/{run_id}")
    path = clone / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    git(clone, "commit", "--quiet", "--all", "--message=changed")
    git(clone, "switch", "--quiet", "main")


@pytest.mark.slow
def test_on_another_machine_the_same_comes_out(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = runs(elsewhere)[False]
    code = command(monkeypatch, "reproduce", run_id)
    said = capsys.readouterr().out
    assert code == 0, said
    assert f"{run_id} came out as recorded, to the byte" in said
    root = elsewhere / ".state/reproductions" / run_id
    assert (root / "logs/data.log").read_text(encoding="utf-8").count("Running stage 'data'") == 1
    compared = read_json(root / ".state/comparison.json")
    assert compared["outputs"] == {"data": 2, "audit": 3}
    assert compared["metrics"] == {"data": 2, "audit": 3}
    assert git(elsewhere, "status", "--porcelain") == ""


@pytest.mark.slow
def test_what_differs_is_said_by_stage_and_by_name(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A metric that somebody wrote by hand, and a line of code that does something else."""
    run_id = runs(elsewhere)[False]
    change(elsewhere, run_id, "out/validation.json", "true", "false")
    change(elsewhere, run_id, "components/__main__.py", "0.25", "0.125")
    code = command(monkeypatch, "reproduce", run_id[:-2])
    said = capsys.readouterr().out
    assert code == 3, said
    assert "out/validation.json success" in said
    assert "out/audit.json rates.0" in said
    compared = read_json(elsewhere / ".state/reproductions" / run_id / ".state/comparison.json")
    found = {(row["stage"], row["what"]): (row["recorded"], row["found"]) for row in compared["differences"]}
    assert found == {
        ("data", "out/validation.json success"): ("False", "True"),
        ("audit", "out/audit.json rates.0"): ("0.25", "0.125"),
    }


@pytest.mark.slow
def test_within_the_tolerance_numbers_may_differ_and_digests_do_not_count(elsewhere: Path) -> None:
    run_id = runs(elsewhere)[True]
    change(elsewhere, run_id, "components/__main__.py", "0.25", "0.375")
    with checked_out(elsewhere, run_id) as found:
        compared = reproduce_run(found)
    assert compared.equal, compared.differences
    assert compared.outputs == {"data": 0, "audit": 0}
    assert compared.metrics == {"data": 2, "audit": 3}


def test_another_answer_is_a_difference_whatever_the_tolerance(elsewhere: Path) -> None:
    run_id = runs(elsewhere)[True]
    change(elsewhere, run_id, "run.json", '"state": "candidate"', '"state": "no candidate"')
    with checked_out(elsewhere, run_id) as found:
        compared = reproduce_run(found, lambda workspace, stage: reproduction.StageResult(stage, "done", 0.0))
    assert ("gate", "outcome", "no candidate", "candidate") in [astuple(one) for one in compared.differences]


@pytest.mark.parametrize(
    ("tolerance", "old", "new", "equal"),
    [
        (0.0, 1.0, 1.0, True),
        (0.0, 1.0, 1.0000001, False),
        (0.1, 100, 109, True),
        (0.1, 100, 120, False),
        (0.1, 0.0, 0.05, True),
        (0.1, 0.5, None, False),
        (0.1, 0.5, "nothing", False),
    ],
)
def test_numbers_agree_absolutely_or_relatively(tolerance: float, old: object, new: object, equal: bool) -> None:
    assert agree(tolerance, old, new) is equal


def test_the_budget_of_the_run_is_no_limit_on_its_reproduction(elsewhere: Path) -> None:
    with checked_out(elsewhere, runs(elsewhere)[True]) as found:
        assert "hours: 0.5" in (found.root / "params.yaml").read_text(encoding="utf-8")
        assert found.settings.budget.hours is None


def test_a_refusal_where_none_was_recorded_is_a_difference(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduction, "execute", lambda workspace, stage: None)
    with checked_out(elsewhere, runs(elsewhere)[False]) as found:

        def refuse(workspace: Workspace, stage: str) -> reproduction.StageResult:
            return reproduction.StageResult(stage, "refused", 0.0)

        compared = reproduce_run(found, refuse)
    (row,) = compared.differences
    assert (row.stage, row.what, row.recorded, row.found) == ("data", "outcome", "done", "refused")


def test_a_stage_that_fails_here_is_no_comparison_and_says_what_is_different(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = runs(elsewhere)[False]
    change(elsewhere, run_id, "components/__main__.py", "import hashlib,", "import nothing_like_it,")
    change(elsewhere, run_id, "run.json", '"python": "3', '"python": "2')
    assert command(monkeypatch, "reproduce", run_id) == 2
    said = capsys.readouterr().err
    assert "cannot be reproduced here" in said
    assert "python: 2" in said


def test_an_input_that_no_remote_has_is_named(
    original: Path, elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere / ".dvc/config.local").write_text(
        f"['remote \"store\"']\n    url = {tmp_path}/empty\n", encoding="utf-8"
    )
    with pytest.raises(InputError, match="dvc pull"), checked_out(elsewhere, runs(elsewhere)[False]):
        pass


def test_the_own_branch_comes_before_that_of_a_remote(elsewhere: Path) -> None:
    run_id = runs(elsewhere)[False]
    assert find_branch(elsewhere, run_id[:-1]) == (run_id, f"refs/remotes/origin/runs/{run_id}")
    git(elsewhere, "branch", f"runs/{run_id}", f"origin/runs/{run_id}")
    assert find_branch(elsewhere, run_id) == (run_id, f"refs/heads/runs/{run_id}")


def test_a_branch_that_is_not_here_says_what_to_fetch(elsewhere: Path) -> None:
    with pytest.raises(InputError, match="no branch runs/other") as refused:
        find_branch(elsewhere, "other")
    assert "git fetch origin 'refs/heads/runs/*:refs/remotes/origin/runs/*'" in str(refused.value)
    with pytest.raises(InputError, match="more than one run begins with 'demo-'"):
        find_branch(elsewhere, "demo-")
    with pytest.raises(InputError, match="no branch runs/RUN-ID"):
        find_branch(elsewhere, "")
    with pytest.raises(InputError, match="no branch runs/xxx"):
        find_branch(elsewhere, "x" * 5000)


def test_a_branch_without_a_record_is_refused(elsewhere: Path) -> None:
    git(elsewhere, "branch", "runs/mine")
    with pytest.raises(InputError, match="holds no run's record"), checked_out(elsewhere, "mine") as found:
        reproduce_run(found)
