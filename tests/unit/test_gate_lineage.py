"""Where a candidate comes from: every part of it is checked, and what is not said fails."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from passing_run import layout, whole

from components.config import Settings
from components.errors import InputError
from components.files import sha256_tree, write_text
from components.gate.checks.stored import KNOWN, PIPELINE
from components.gate.evidence import Evidence
from components.layout import Layout
from components.stages import OPTIONAL, STAGES
from flows.host.git import git, snapshot
from flows.recording.lineage import committed, outputs
from tests.proposals import lineage, write_lock
from tests.unit.flows_project import build, ready, run_line

__all__ = ["layout", "whole"]


def judged(layout: Layout, **said: Any) -> tuple[str, str]:
    """What the check says of the run as it lies there; None takes a part of the lineage away."""
    recorded = {name: value for name, value in lineage(layout, **said).items() if value is not None}
    return on(layout, recorded)


def on(layout: Layout, recorded: Any) -> tuple[str, str]:
    digest = sha256_tree(layout.train_checkpoint)
    parts = {
        "candidate": digest,
        "lineage": recorded,
        "lock": yaml.safe_load(layout.lock.read_text()) if layout.lock.exists() else InputError("file not found"),
        "params": yaml.safe_load(layout.params.read_text()),
        "root": layout.root,
        "train": {"checkpoint_sha256": digest},
    }
    try:
        return KNOWN.judge(Evidence(parts), Settings())
    except InputError as error:  # as the gate takes it
        return "fail", error.what


def test_a_committed_run_whose_outputs_are_as_recorded_passes(layout: Layout) -> None:
    result, words = judged(layout)
    assert result == "pass", words
    assert words == "run run, commit 111111111111, 1 input; every output as dvc.lock has it"


def test_a_snapshot_of_a_working_tree_is_for_a_person_to_look_at(layout: Layout) -> None:
    result, words = judged(layout, committed=False)
    assert result == "inconclusive"
    assert "a snapshot of a working tree" in words


PARTS = ("run", "commit", "tree", "committed", "inputs", "checkpoint_sha256", "outputs")


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"commit": "main"}, "commit is no object of Git"),
        ({"tree": "1" * 41}, "tree is no object of Git"),
        ({"code_sha256": "x"}, "code_sha256 is no sha256"),
        ({"packages_sha256": 7}, "packages_sha256 is no sha256"),
        ({"committed": "yes"}, "it is not said whether the commit"),
        ({"inputs": {}}, "inputs is no list"),
        ({"inputs": [{"path": "rows.jsonl"}]}, "an input has no sha256"),
        ({"inputs": ["rows.jsonl"]}, "an input has no sha256"),
        ({"checkpoint_sha256": "9" * 64}, "the checkpoint is not the one that lay in the run's workspace"),
        ({"outputs": []}, "outputs is no mapping"),
        ({"outputs": {}}, "was not looked at"),
        *(({name: None}, f"lineage: there is no {name}") for name in (*PARTS, "code_sha256", "packages_sha256")),
    ],
)
def test_what_is_not_said_or_cannot_be_fails(layout: Layout, said: dict[str, Any], problem: str) -> None:
    result, words = judged(layout, **said)
    assert result == "fail"
    assert problem in words


@pytest.mark.parametrize("recorded", [[], "x", 7])
def test_a_lineage_that_is_no_mapping_fails(layout: Layout, recorded: Any) -> None:
    assert on(layout, recorded)[0] == "fail"


def test_the_stages_that_must_be_recorded_are_those_of_the_line() -> None:
    assert list(PIPELINE) == [name for name in STAGES if name not in OPTIONAL]


def change(layout: Layout, edit: Callable[[dict[str, Any]], object]) -> None:
    lock = yaml.safe_load(layout.lock.read_text())
    edit(lock["stages"])
    layout.lock.write_text(yaml.safe_dump(lock))


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda s: s.pop("audit"), "dvc.lock has no stage audit"),
        (lambda s: s["train"]["outs"][0].update(md5="0" * 32), "out/train is not what dvc.lock has recorded"),
        (lambda s: s["gate"]["deps"][0].update(md5="0" * 32), "the stage gate read another out/train than was written"),
        (lambda s: s["gate"]["params"]["params.yaml"].update({"train.steps": 11}), "ran with another train.steps"),
        (lambda s: s["gate"]["params"]["params.yaml"].update({"no.such": 1}), "ran with another no.such"),
        (lambda s: s["train"]["outs"][0].pop("md5"), "names an output without its digest"),
        (lambda s: s.update(train=None), "names an output without its digest"),
        (lambda s: s.clear(), "dvc.lock has no stage data, audit"),
    ],
)
def test_a_lock_that_does_not_fit_fails(layout: Layout, edit: Callable[[dict[str, Any]], object], problem: str) -> None:
    before = lineage(layout)
    change(layout, edit)
    result, words = on(layout, before)
    assert result == "fail"
    assert problem in words


@pytest.mark.parametrize("name", ["../other/rows.jsonl", "/etc/hostname", "out/../../rows.jsonl"])
def test_a_lock_that_names_a_place_outside_the_run_fails_and_nothing_is_read_there(layout: Layout, name: str) -> None:
    before = lineage(layout)
    change(layout, lambda stages: stages["data"]["outs"].append({"path": name, "md5": "0" * 32}))
    before["outputs"][name] = "0" * 32
    assert on(layout, before) == ("fail", f"dvc.lock names {name}, which is no place in a run")


def test_a_lock_that_names_what_no_file_system_takes_fails(layout: Layout) -> None:
    before, name = lineage(layout), "out/" + "x" * 300
    change(layout, lambda stages: stages["data"]["outs"].append({"path": name, "md5": "0" * 32}))
    before["outputs"][name] = "0" * 32
    result, words = on(layout, before)
    assert (result, "cannot read xxx" in words) == ("fail", True)


@pytest.mark.parametrize("text", ["", "[]", "stages: []"])
def test_a_lock_without_stages_fails(layout: Layout, text: str) -> None:
    before = lineage(layout)
    layout.lock.write_text(text)
    assert on(layout, before) == ("fail", "lock: dvc.lock has no stages")


def test_without_a_lock_it_fails(layout: Layout) -> None:
    before = lineage(layout)
    layout.lock.unlink()
    assert on(layout, before) == ("fail", "lock: file not found")


def test_an_output_that_was_changed_after_it_was_recorded_fails(layout: Layout) -> None:
    layout.evaluation.write_text("{}")
    result, words = judged(layout)
    assert result == "fail"
    assert "out/evaluation.json is not what dvc.lock has recorded" in words


def test_evidence_that_was_changed_after_the_lineage_was_written_fails(layout: Layout) -> None:
    before = lineage(layout)
    layout.evaluation.write_text("{}")
    result, words = on(layout, before)
    assert result == "fail"
    assert "out/evaluation.json among the evidence is not what dvc.lock has recorded" in words


def test_settings_that_were_changed_after_the_run_fail(layout: Layout) -> None:
    tree = yaml.safe_load(layout.params.read_text())
    tree["train"]["steps"] = 11
    write_text(layout.params, yaml.safe_dump(tree))
    assert "the stage gate ran with another train.steps" in judged(layout)[1]


def test_many_problems_are_counted(layout: Layout) -> None:
    assert judged(layout, outputs={}, commit="x", tree="x")[1].endswith("more")


def test_numbers_that_dvc_writes_otherwise_are_the_same(layout: Layout) -> None:
    tree = yaml.safe_load(layout.params.read_text())
    tree["learner"]["lr"] = 1e-05
    write_text(layout.params, yaml.safe_dump(tree))
    write_lock(layout)
    lock = layout.lock.read_text().replace("train.steps: 10", "train.steps: 10\n        learner.lr: 1e-05")
    layout.lock.write_text(lock)
    assert yaml.safe_load(lock)["stages"]["gate"]["params"]["params.yaml"]["learner.lr"] == "1e-05"
    assert judged(layout)[0] == "pass"


# --- what the flow finds out


def test_digests_of_outputs_are_those_that_dvc_records(tmp_path: Path) -> None:
    workspace = ready(build(tmp_path / "project"))
    run_line(workspace)
    found = outputs(workspace.root)
    stages = yaml.safe_load(workspace.layout.lock.read_text())["stages"].values()
    assert found == {out["path"]: out["md5"] for stage in stages for out in stage["outs"]}
    assert found["out/data"].endswith(".dir")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return build(tmp_path / "project")


def test_a_commit_of_a_branch_or_of_head_is_one_of_the_project(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    assert committed(repository, first)
    git(repository, "checkout", "--quiet", "--detach")
    assert committed(repository, first)


def test_a_snapshot_is_none_though_the_branch_of_its_run_is_checked_out(repository: Path) -> None:
    (repository / "code.py").write_text("x = 2\n")
    taken = snapshot(repository).commit
    assert not committed(repository, taken)
    git(repository, "branch", "runs/demo-1", taken)
    git(repository, "checkout", "--quiet", "--force", "runs/demo-1")
    assert not committed(repository, taken)


def test_a_commit_that_only_a_runs_branch_still_holds_is_none(repository: Path) -> None:
    (repository / "code.py").write_text("x = 3\n")
    git(repository, "commit", "--quiet", "--all", "--message=second")
    second = git(repository, "rev-parse", "HEAD")
    git(repository, "branch", "runs/demo-2")
    git(repository, "reset", "--quiet", "--hard", "HEAD~1")
    assert not committed(repository, second)
    git(repository, "tag", "kept", second)
    assert committed(repository, second)
