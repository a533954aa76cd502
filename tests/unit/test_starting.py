"""A project of one's own: what the wheel brings, what `evenkeel init` writes, what an update changes."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from components import installed
from components.config import load
from components.config.promotion import load_policy
from components.config.shipped import install
from components.errors import InputError
from components.installed import check_installed
from components.stages import STAGES
from flows.budget.history import result_keys
from flows.cli import app
from flows.host.git import git
from flows.run.workspace import locate
from tests.code_graph import ROOT
from tests.wheel import build, tracked

RUNNER = CliRunner()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project, in which the test works."""
    result = RUNNER.invoke(app, ["init", str(tmp_path / "mine")])
    assert result.exit_code == 0, (result.output, result.exception)
    monkeypatch.chdir(tmp_path / "mine")
    return tmp_path / "mine"


def test_the_wheel_has_every_file_that_the_code_reads(tmp_path: Path) -> None:
    with zipfile.ZipFile(build(tmp_path)) as archive:
        names = set(archive.namelist())
    files = ("dvc.yaml", "prefect.yaml", "constraints.txt", ".dvcignore", ".dvc/config", ".dvc/.gitignore")
    shipped = {f"components/shipped/{name}" for name in (*tracked("configs"), *files)}
    assert {*tracked("components", "flows")} | shipped <= names
    assert not [name for name in names if name.startswith(("tests", "configs"))]


def test_a_project_is_a_repository_without_the_code_of_the_package(project: Path) -> None:
    files = git(project, "ls-files").splitlines()
    assert git(project, "status", "--porcelain") == ""
    assert not [name for name in files if name.startswith(("components", "flows"))]
    assert {"dvc.yaml", "prefect.yaml", "configs/promotion/policy.yaml", "tests/test_whole_number.py"} <= {*files}
    assert load_policy(project).sha256 == load_policy(ROOT).sha256


def test_its_configurations_are_those_of_the_package_with_its_own_on_top(project: Path) -> None:
    assert load(Path("configs/demo.yaml")) == load(ROOT / "configs/demo.yaml")
    mine = load(Path("configs/mine.yaml"))
    assert (mine.name, mine.reward.verifier.kind) == ("mine", "python")
    assert load(Path("evenkeel:gsm8k.yaml")) == load(ROOT / "configs/gsm8k.yaml")


def test_a_name_that_the_package_does_not_have_is_refused(project: Path) -> None:
    Path("configs/mine.yaml").write_text('extends: ["evenkeel:recipes/none.yaml"]\n')
    with pytest.raises(InputError, match="recipes/none"):
        load(Path("configs/mine.yaml"))


def test_what_is_missing_is_installed_for_the_package_that_is_there(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("components").mkdir()  # the project's own, so this is no checkout
    assert install("llm") == "pip install -c constraints.txt 'evenkeel[llm]'"
    assert install("trackio", tested=False) == "pip install 'evenkeel[trackio]'"
    monkeypatch.chdir(tmp_path)
    assert install("llm") == "pip install 'evenkeel[llm]'"
    monkeypatch.chdir(ROOT)
    assert install("llm") == "pip install -c constraints.txt -e '.[llm]'"
    assert install() == "pip install -c constraints.txt -e ."


def test_its_pipeline_has_a_digest_in_place_of_the_code_of_a_stage(project: Path) -> None:
    own, whole = (yaml.safe_load((root / "dvc.yaml").read_text())["stages"] for root in (project, ROOT))
    assert own.keys() == whole.keys() == STAGES.keys()
    for name, stage in own.items():
        others = [path for path in whole[name]["deps"] if path.startswith("out/")]
        assert stage["deps"] == [f"package/{name}", *others]
        assert {**stage, "deps": []} == {**whole[name], "deps": []}


def test_a_run_of_it_has_a_name_and_digests_of_its_stages(project: Path) -> None:
    workspace = locate(project, Path("configs/demo.yaml"))
    assert workspace.snapshot.clean
    assert result_keys(workspace).keys() == STAGES.keys()


def test_other_code_is_refused_until_an_update_records_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = {**installed.digests(), "train": "0" * 64}
    monkeypatch.setattr(installed, "digests", lambda: other)
    with pytest.raises(InputError, match=r"other code than is recorded, for train\n"):
        locate(project, Path("configs/demo.yaml"))
    result = RUNNER.invoke(app, ["update"])
    assert result.exit_code == 0 and "train: executed again by the next run" in result.output
    check_installed(project)
    assert git(project, "diff", "--name-only") == "package/train"


def test_the_digest_of_a_stage_follows_its_code_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "components/a").mkdir(parents=True)
    (tmp_path / "components/a/x.py").write_text("x = 1")
    (tmp_path / "components/b.py").write_text("y = 1")
    monkeypatch.setattr(installed, "__file__", str(tmp_path / "components/installed.py"))
    before = installed._digest(["components/a"])
    (tmp_path / "components/b.py").write_text("y = 2")
    assert installed._digest(["components/a"]) == before
    (tmp_path / "components/a/x.py").write_text("x = 2")
    assert installed._digest(["components/a"]) != before


def test_a_checkout_needs_no_record_and_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    check_installed(ROOT)
    monkeypatch.chdir(ROOT)
    assert isinstance(RUNNER.invoke(app, ["update"]).exception, InputError)


def test_what_is_there_is_left_alone(project: Path) -> None:
    assert isinstance(RUNNER.invoke(app, ["init", str(project)]).exception, InputError)
    assert git(project, "status", "--porcelain") == ""


def test_its_readme_installs_the_package_as_the_docs_do() -> None:
    readme, docs = ((ROOT / name).read_text() for name in ("flows/starting/template/README.md", "docs/own-project.md"))
    commands = re.findall(r"pip install [^`\n]*evenkeel[^`\n]*", readme)
    assert len(commands) == 2 and all(command in docs for command in commands)


def test_the_versions_name_the_commit_of_a_checkout() -> None:
    found = json.loads(RUNNER.invoke(app, ["version", "--json"]).output)
    assert found["commit"].removesuffix("+") == git(ROOT, "rev-parse", "HEAD")
    assert {"evenkeel", "torch", "transformers", "prefect", "dvc", "python"} <= found.keys()
    assert f"torch        {found['torch']}" in RUNNER.invoke(app, ["version"]).output


def test_what_the_docs_have_people_write_is_no_code_in_either_kind_of_project() -> None:
    files = (ROOT / ".gitignore", ROOT / "flows/starting/template/gitignore")
    own, template = (path.read_text(encoding="utf-8").splitlines() for path in files)
    written = {"/models/", "/data/", "/incoming/", "/compare.html", "/report.html", "/release/", "/card.md"}
    assert written <= {*own} & {*template}
