"""How data and models get into a run's workspace, and that a run does not depend on where they lie."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from components.config.pins import check_digest
from components.errors import InputError
from flows.host.dvc import configure, default_remote, environment
from flows.host.git import git
from flows.recording.inputs import track_inputs
from flows.run.inputs import place_inputs
from flows.run.workspace import Workspace, locate
from tests.tiers import slow_but
from tests.unit import flows_project
from tests.unit.flows_project import DEMO, ready


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = flows_project.build(tmp_path / "project")
    monkeypatch.chdir(root)
    return root


def source(path: object) -> str:
    """A file, or else a folder; their names distinguish them."""
    kind = "jsonl" if Path(str(path)).suffix == ".jsonl" else "arrow"
    return f"data.source={{kind: {kind}, path: {path}}}"


def path_of(workspace: Workspace) -> str:
    return str(workspace.settings.model_dump(mode="json")["data"]["source"]["path"])


def dvc_add(project: Path, name: str) -> None:
    """Put a file or a folder under DVC, and commit that."""
    command = [sys.executable, "-m", "dvc", "add", "--quiet", name]
    subprocess.run(command, cwd=project, env=environment(project), check=True)
    commit(project)


def commit(project: Path) -> None:
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message=more")


def go_on(workspace: Workspace) -> None:
    """Place the inputs as a run does that is reopened: where they came from is known by their links alone."""
    as_reopened = tuple(type(one)(one.path, one.sha256, "link") for one in workspace.inputs)
    place_inputs(workspace.root, workspace.project, as_reopened, log=workspace.log("inputs"))


def check(workspace: Workspace) -> None:
    """The input in the workspace is the one that the run was made with."""
    check_digest(workspace.root / path_of(workspace), workspace.inputs[0].sha256)


def rows(folder: Path, text: str = '{"question": "2+2", "answer": "4"}\n') -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows.jsonl").write_text(text, encoding="utf-8")
    return folder / "rows.jsonl"


def test_what_git_holds_keeps_its_path(project: Path) -> None:
    workspace = ready(project, source("inputs/rows.jsonl"))
    assert path_of(workspace) == "inputs/rows.jsonl"
    assert not (workspace.root / path_of(workspace)).is_symlink()


def test_a_folder_of_which_git_holds_only_a_part_is_linked_whole(project: Path) -> None:
    (project / "model").mkdir()
    (project / "model/README.md").write_text("a model\n", encoding="utf-8")
    commit(project)
    assert locate(project, DEMO, [source("model")]).inputs[0].kept_by == "git"
    (project / ".git/info/exclude").write_text("*.safetensors\n", encoding="utf-8")
    (project / "model/model.safetensors").write_text("weights", encoding="utf-8")
    workspace = ready(project, source("model"))
    assert (workspace.root / path_of(workspace) / "model.safetensors").exists()
    check(workspace)


def test_anything_else_is_linked_by_its_digest_and_its_name(project: Path, tmp_path: Path) -> None:
    file = rows(tmp_path / "elsewhere")
    workspace = ready(project, source("../elsewhere/rows.jsonl"))
    (found,) = workspace.inputs
    assert path_of(workspace) == f"inputs/{found.sha256[:12]}/rows.jsonl"
    assert (workspace.root / path_of(workspace)).readlink() == file
    check(workspace)


def test_a_folder_is_linked_whole_and_its_digest_is_that_of_the_folder(project: Path, tmp_path: Path) -> None:
    rows(tmp_path / "model")
    check(ready(project, source(tmp_path / "model")))


def test_a_run_is_the_same_run_wherever_its_input_lies(project: Path, tmp_path: Path) -> None:
    first, second = rows(tmp_path / "a"), rows(tmp_path / "b")
    before = ready(project, source(first))
    first.unlink()
    after = ready(project, source(second))
    assert after.run_id == before.run_id
    assert (after.root / path_of(after)).readlink() == second


def test_another_content_is_another_run(project: Path, tmp_path: Path) -> None:
    before = locate(project, DEMO, [source(rows(tmp_path / "a"))])
    after = locate(project, DEMO, [source(rows(tmp_path / "a", "{}\n"))])
    assert after.run_id != before.run_id


def test_linked_inputs_and_the_record_are_no_edits_of_the_workspace(project: Path, tmp_path: Path) -> None:
    workspace = ready(project, source(rows(tmp_path / "a")))
    (workspace.root / f"{path_of(workspace)}.dvc").write_text("outs: []\n", encoding="utf-8")
    (workspace.root / "run.json").write_text("{}", encoding="utf-8")
    ready(project, source(tmp_path / "a/rows.jsonl"))
    (workspace.root / "inputs/more.jsonl").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"inputs/more\.jsonl"):
        ready(project, source(tmp_path / "a/rows.jsonl"))


@pytest.mark.parametrize("named", slow_but(["data/rows.jsonl", "data"], "data/rows.jsonl"))
def test_what_dvc_tracks_keeps_its_path_and_comes_out_of_the_cache(project: Path, named: str) -> None:
    rows(project / "data")
    dvc_add(project, "data")
    workspace = ready(project, source(named))
    assert path_of(workspace) == named
    check(workspace)
    assert (workspace.root / "data/rows.jsonl").stat().st_nlink > 1, "linked to the cache, not copied"


@pytest.mark.slow
def test_a_tracked_file_that_has_changed_since_is_refused_with_the_way_out(project: Path) -> None:
    rows(project / "data")
    dvc_add(project, "data/rows.jsonl")
    rows(project / "data", '{"question": "changed", "answer": "0"}\n')
    for _attempt in range(2):  # what was pulled in vain is not taken for the right content the second time
        with pytest.raises(InputError, match="another content") as refused:
            ready(project, source("data/rows.jsonl"))
        assert "dvc add data/rows.jsonl" in str(refused.value)


def test_an_input_that_is_gone_when_the_run_goes_on_is_named(project: Path, tmp_path: Path) -> None:
    workspace = ready(project, source(rows(tmp_path / "a")))
    shutil.rmtree(tmp_path / "a")
    with pytest.raises(InputError, match="is gone") as refused:
        go_on(workspace)
    assert refused.value.where == str(tmp_path / "a/rows.jsonl")


@pytest.mark.slow
def test_an_input_that_was_recorded_before_it_went_comes_out_of_the_cache(project: Path, tmp_path: Path) -> None:
    workspace = ready(project, source(rows(tmp_path / "a")))
    track_inputs(workspace)
    shutil.rmtree(tmp_path / "a")
    go_on(workspace)
    check(workspace)


@pytest.mark.parametrize("name", ["2026-11-22T02:30.jsonl", "-x.jsonl", "a*b [1]'s.jsonl", "rows.dvc"])
def test_whatever_its_name_an_input_is_linked_by_one_that_dvc_takes(project: Path, tmp_path: Path, name: str) -> None:
    file = rows(tmp_path / "a").rename(tmp_path / "a" / name)
    overrides = [f"data.source={json.dumps({'kind': 'jsonl', 'path': str(file)})}"]
    (found,) = locate(project, DEMO, overrides).inputs
    assert not set(found.path) & set(":*[]'")
    assert found.path.rpartition(".")[2] != "dvc"


@pytest.mark.slow
def test_a_name_that_dvc_would_misread_is_recorded_and_comes_back(project: Path, tmp_path: Path) -> None:
    file = rows(tmp_path / "a").rename(tmp_path / "a/-2:30.jsonl")
    workspace = ready(project, f"data.source={json.dumps({'kind': 'jsonl', 'path': str(file)})}")
    track_inputs(workspace)
    file.unlink()
    go_on(workspace)
    check(workspace)


def test_an_input_that_changed_while_the_run_worked_is_not_recorded_as_what_it_was(
    project: Path, tmp_path: Path
) -> None:
    workspace = ready(project, source(rows(tmp_path / "a")))
    rows(tmp_path / "a", '{"question": "changed", "answer": "0"}\n')
    with pytest.raises(InputError, match="changed while the run worked") as refused:
        track_inputs(workspace)
    assert f"--resume {workspace.run_id}" in str(refused.value)
    assert not list(workspace.root.glob("inputs/*/*.dvc"))


@pytest.mark.parametrize("name", [".git/HEAD", ".dvcignore", "sub/old.jsonl.dvc"])
def test_a_folder_that_dvc_would_not_hold_whole_is_refused_before_the_run(
    project: Path, tmp_path: Path, name: str
) -> None:
    rows(tmp_path / "model")
    rows((tmp_path / "model" / name).parent).rename(tmp_path / "model" / name)
    with pytest.raises(InputError, match="cannot be recorded with"):
        locate(project, DEMO, [source(tmp_path / "model")])


# The DVC settings of a workspace


def test_remotes_of_the_project_work_from_inside_a_workspace(project: Path, tmp_path: Path) -> None:
    flows_project.add_store(project, "../../store")
    workspace = ready(project)
    text = (workspace.root / ".dvc/config.local").read_text(encoding="utf-8")
    assert f"url = {tmp_path}/store" in text
    assert f"dir = {project}/.dvc/cache" in text
    assert default_remote(project) == "store"


def test_passwords_of_a_remote_stay_with_their_owner(project: Path) -> None:
    text = "['remote \"s3\"']\n    url = s3://bucket\n    secret_access_key = swordfish\n"
    (project / ".dvc/config.local").write_text(text, encoding="utf-8")
    workspace = ready(project)
    local = workspace.root / ".dvc/config.local"
    assert "swordfish" in local.read_text(encoding="utf-8")
    assert stat.S_IMODE(local.stat().st_mode) == 0o600
    assert "config.local" not in git(workspace.root, "status", "--porcelain", "--untracked-files=all")


def test_symbolic_links_into_the_cache_are_not_taken_over(project: Path, tmp_path: Path) -> None:
    (project / ".dvc/config").write_text('[cache]\n    type = "symlink,hardlink"\n', encoding="utf-8")
    configure(tmp_path / "copy", project)
    assert "type = hardlink" in (tmp_path / "copy/.dvc/config.local").read_text(encoding="utf-8")


def test_no_remote_is_none_and_a_configuration_that_dvc_cannot_read_is_one_clear_error(project: Path) -> None:
    assert default_remote(project) is None
    (project / ".dvc/config").write_text("[core\n", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be read"):
        default_remote(project)
