"""The commit next to a figure is that of the code that ran, and a commit is compared with HEAD over that code only."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.host.git import git
from tests.benchmarks import __main__ as command
from tests.benchmarks.measured_code import RUNNING, Code, head, same_at_head
from tests.benchmarks.results import Results
from tests.benchmarks.section import Row, skipped


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one file of each kind."""
    for name in RUNNING:
        path = tmp_path / name if "." in name else tmp_path / name / "benchmarks" / "a.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    (tmp_path / ".gitignore").write_text("__pycache__\n")
    git(tmp_path, "init", "--quiet")
    return committed(tmp_path)


def committed(project: Path) -> Path:
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message=x")
    return project


def change(project: Path, name: str) -> None:
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("changed")


@pytest.mark.parametrize(
    "name", ["configs/demo.yaml", "dvc.yaml", "constraints.txt", "pyproject.toml", "tests/project.py", "flows/new/a.py"]
)
def test_a_change_of_anything_that_runs_is_marked(project, name):
    assert Code.now(project).commit == head(project) != ""
    change(project, name)
    assert Code.now(project).commit == f"{head(project)}+"


@pytest.mark.parametrize(
    "name", ["docs/results/growth.json", "configs/health/README.md", "components/__pycache__/a.pyc"]
)
def test_results_pages_and_caches_are_no_change(project, name):
    before = Code.now(project)
    change(project, name)
    assert Code.now(project) == before


def test_the_commit_is_that_of_the_beginning_with_a_mark_if_files_changed_until_the_end(project):
    before = Code.now(project)
    assert before.until(Code.now(project)) == before.commit
    change(project, "docs/page.md")
    assert before.until(Code.now(committed(project))) == before.commit
    change(project, "components/benchmarks/a.txt")
    assert before.until(Code.now(committed(project))) == f"{before.commit}+"
    later = Code.now(project)
    change(project, "configs/demo.yaml")
    dirty = Code.now(project)
    assert dirty.until(Code.now(committed(project))) == dirty.until(dirty) == f"{later.commit}+"


def test_without_git_there_is_no_commit_and_changes_are_seen_nevertheless(project):
    (project / ".git").rename(project / "no git")
    before = Code.now(project)
    assert before.commit == before.until(before) == ""
    change(project, "configs/demo.yaml")
    assert Code.now(project).digest != before.digest


def test_a_commit_has_the_code_of_head_until_what_is_measured_changes(project):
    first = head(project)
    change(project, "docs/page.md")
    change(project, "configs/health/README.md")
    change(project, "tests/unit/test_a.py")
    committed(project)
    assert same_at_head(first, project)
    change(project, "configs/demo.yaml")
    committed(project)
    assert not same_at_head(first, project) and same_at_head(head(project), project)


@pytest.mark.parametrize("commit", ["", "0123456789", "no commit"])
def test_a_commit_that_is_not_known_is_another_state_of_the_code(project, commit):
    assert not same_at_head(commit, project)
    assert not same_at_head(f"{head(project)}+", project)


# What is said of results that stay


def rows(project: Path) -> dict[str, Row]:
    """One of a commit whose code has changed since, one of HEAD's code, and one that could not be measured."""
    first = head(project)
    change(project, "configs/demo.yaml")
    committed(project)
    second = head(project)
    change(project, "README.md")
    committed(project)
    return {"old": {"commit": first}, "new": {"commit": second}, "none": {**skipped("no GPU"), "commit": first}}


def test_cells_of_other_code_are_named_with_the_command_that_measures_again(project):
    found = rows(project)
    said = Results("growth", "full", rows=found).stale(project)
    assert said == (
        f"growth: 1 of 2 cells measured by other code than HEAD's ({found['old']['commit']}); "
        "`make bench FORCE=1 SECTIONS=growth` measures again: old"
    )
    del found["new"]
    assert Results("growth", "full", rows=found).stale(project).startswith("growth: all cells measured by other code")


def test_nothing_is_said_where_nothing_has_changed(project):
    found = rows(project)
    del found["old"]
    assert Results("growth", "full", rows=found).stale(project) == ""


def test_without_git_nothing_is_known_and_that_is_said(project):
    found = rows(project)
    (project / ".git").rename(project / "no git")
    said = Results("growth", "full", rows=found).stale(project)
    assert said == "growth: without Git nothing can be known of the code that it was measured by"


def test_a_call_says_what_is_stale_and_measures_nothing_of_it_again(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "interrupted_by_signals", lambda: None)
    cells = command.SECTIONS["orchestration"].cells("full")
    path = tmp_path / "orchestration.json"
    Results("orchestration", "full", rows={cell: {"commit": "0123456789"} for cell in cells}).write(path)
    before = path.read_text()
    command.run(["orchestration"], tmp_path, smoke=False, force=False, work=None)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and "`make bench FORCE=1 SECTIONS=orchestration` measures again" in said[1]
    assert path.read_text() == before
