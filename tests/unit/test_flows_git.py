"""Recording the code of a run, and checking it out, without touching what the user has."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from components.errors import InputError
from flows.host import git as module
from flows.host.git import at_commit, check_out, git, project_root, snapshot


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit: dvc.yaml, code.py and a .gitignore."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    for name, text in {"dvc.yaml": "stages: {}\n", "code.py": "x = 1\n", ".gitignore": "/runs/\n"}.items():
        (root / name).write_text(text, encoding="utf-8")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=first")
    return root


@pytest.mark.parametrize(("times", "runs"), [(2, True), (9, False)])
def test_a_command_that_garbage_collection_overtook_is_run_again(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, runs: bool
) -> None:
    real, tools, count = shutil.which("git"), tmp_path / "tools", tmp_path / "count"
    tools.mkdir()
    lines = ("#!/bin/sh", f"echo >> {count}", f'test $(wc -l < {count}) -gt {times} && exec {real} "$@"')
    (tools / "git").write_text("\n".join([*lines, f"echo 'error: {module.OVERTAKEN}' >&2; exit 128", ""]))
    (tools / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    if runs:
        assert git(project, "rev-parse", "--abbrev-ref", "HEAD") == "main"
    else:
        with pytest.raises(InputError, match="git rev-parse: error: unable to create temporary file"):
            git(project, "rev-parse", "--abbrev-ref", "HEAD")
    assert len(count.read_text().splitlines()) == (times + 1 if runs else 5)


def test_a_clean_tree_is_recorded_by_its_own_commit(project: Path) -> None:
    taken = snapshot(project)
    assert taken.commit == git(project, "rev-parse", "HEAD")
    assert taken.tree == git(project, "rev-parse", "HEAD^{tree}")
    assert taken.clean


def test_changes_are_recorded_by_a_commit_on_top_of_head(project: Path) -> None:
    (project / "code.py").write_text("x = 2\n", encoding="utf-8")
    (project / "new.py").write_text("y = 1\n", encoding="utf-8")
    taken = snapshot(project)
    assert not taken.clean
    assert git(project, "show", f"{taken.commit}:code.py") == "x = 2"
    assert git(project, "show", f"{taken.commit}:new.py") == "y = 1"
    assert git(project, "rev-parse", f"{taken.commit}^") == git(project, "rev-parse", "HEAD")


def test_branch_index_and_stash_stay_as_they_are(project: Path) -> None:
    (project / "code.py").write_text("x = 2\n", encoding="utf-8")
    (project / "staged.py").write_text("", encoding="utf-8")
    git(project, "add", "staged.py")

    def state() -> list[str]:
        queries = (["status", "--porcelain"], ["for-each-ref"], ["stash", "list"], ["ls-files", "--stage"])
        return [git(project, *query) for query in queries]

    before = state()
    snapshot(project)
    assert state() == before


def test_equal_trees_give_equal_commits(project: Path) -> None:
    (project / "code.py").write_text("x = 2\n", encoding="utf-8")
    first = snapshot(project)
    (project / "code.py").write_text("x = 3\n", encoding="utf-8")
    other = snapshot(project)
    (project / "code.py").write_text("x = 2\n", encoding="utf-8")
    assert snapshot(project) == first
    assert other.commit != first.commit


def test_a_deleted_file_is_not_in_the_snapshot(project: Path) -> None:
    (project / "code.py").unlink()
    assert "code.py" not in git(project, "ls-tree", "--name-only", snapshot(project).commit).splitlines()


def test_ignored_files_and_the_lock_of_runs_do_not_count(project: Path) -> None:
    (project / "runs").mkdir()
    (project / "runs/big").write_text("x", encoding="utf-8")
    (project / "dvc.lock").write_text("schema: '2.0'\n", encoding="utf-8")
    assert snapshot(project).clean


def test_a_project_without_commits_can_run(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "code.py").write_text("x = 1\n", encoding="utf-8")
    taken = snapshot(tmp_path)
    assert git(tmp_path, "ls-tree", "--name-only", taken.commit) == "code.py"
    assert git(tmp_path, "rev-list", "--count", taken.commit) == "1"


def test_a_large_file_is_refused_before_it_is_copied_into_git(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_UNTRACKED", 10)
    (project / "weights.bin").write_bytes(b"0" * 11)
    with pytest.raises(InputError, match="into Git") as caught:
        snapshot(project)
    assert caught.value.where == str(project / "weights.bin")


def test_inside_a_git_hook_the_right_repository_is_used(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert snapshot(project).clean


def test_an_existing_commit_can_be_named(project: Path) -> None:
    assert at_commit(project, "main") == snapshot(project)
    with pytest.raises(InputError):
        at_commit(project, "no-such-branch")


def test_a_checkout_borrows_the_objects_of_the_project(project: Path, tmp_path: Path) -> None:
    (project / "code.py").write_text("x = 2\n", encoding="utf-8")
    taken, target = snapshot(project), tmp_path / "copy"
    target.mkdir()
    check_out(project, taken.commit, target)
    assert (target / "code.py").read_text(encoding="utf-8") == "x = 2\n"
    assert git(target, "rev-parse", "HEAD") == taken.commit
    assert git(target, "status", "--porcelain") == ""
    assert git(target, "count-objects") == "0 objects, 0 kilobytes"


def test_a_shallow_clone_can_be_checked_out(project: Path, tmp_path: Path) -> None:
    (project / "code.py").write_text("x = 2\n", encoding="utf-8")
    git(project, "commit", "--quiet", "--all", "--message=second")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{project}", "shallow")
    shallow, target = tmp_path / "shallow", tmp_path / "copy"
    (shallow / "code.py").write_text("x = 3\n", encoding="utf-8")
    target.mkdir()
    check_out(shallow, snapshot(shallow).commit, target)
    assert (target / "code.py").read_text(encoding="utf-8") == "x = 3\n"
    assert git(target, "log", "--format=%s").splitlines() == ["evenkeel: snapshot of a run", "second"]


def test_the_hooks_of_the_user_do_not_run(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").write_text("#!/bin/sh\ntouch hooked\n", encoding="utf-8")
    (hooks / "post-checkout").chmod(0o755)
    (tmp_path / "gitconfig").write_text(f"[core]\n\thooksPath = {hooks}\n", encoding="utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    target = tmp_path / "copy"
    target.mkdir()
    check_out(project, snapshot(project).commit, target)
    assert not (target / "hooked").exists()


def test_the_project_is_found_from_a_folder_inside_it(project: Path) -> None:
    (project / "deep/er").mkdir(parents=True)
    assert project_root(project / "deep/er").samefile(project)


def test_outside_a_project_the_message_says_so(tmp_path: Path, project: Path) -> None:
    with pytest.raises(InputError, match="not a Git repository"):
        project_root(tmp_path)
    (project / "dvc.yaml").unlink()
    with pytest.raises(InputError, match=r"no dvc\.yaml"):
        project_root(project)
