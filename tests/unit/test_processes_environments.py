"""Where the Python with vLLM is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from components.config import Settings
from components.errors import InputError
from components.processes import vllm_python
from flows.post_training import check_servers


def python_in(environment: Path) -> Path:
    path = environment / "bin" / "python"
    path.parent.mkdir(parents=True)
    path.touch()
    return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, with the Python that runs elsewhere."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "elsewhere" / ".venv"))
    folder = tmp_path / "project"
    (folder / "runs" / "demo-1").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def settings(**engine: object) -> Settings:
    return Settings.model_validate({"rollout": {"engine": {"kind": "vllm", **engine}}})


def test_the_one_that_is_named_is_taken_and_no_other(project):
    python_in(project / ".venv-vllm")
    named = python_in(project / "named")
    assert vllm_python(named) == named
    with pytest.raises(InputError, match="no environment with vLLM"):
        vllm_python(project / "missing")


def test_the_one_beside_the_python_that_runs_comes_first(project):
    here = python_in(project / ".venv-vllm")
    assert vllm_python(None) == here
    beside = python_in(project.parent / "elsewhere" / ".venv-vllm")
    assert vllm_python(None) == beside


def test_a_stage_in_the_folder_of_its_run_finds_the_one_that_the_flow_found(project, monkeypatch):
    here = python_in(project / ".venv-vllm")
    workspace = project / "runs" / "demo-1"
    check_servers(settings(processes=1), workspace)
    monkeypatch.chdir(workspace)
    assert vllm_python(None) == here


def test_one_that_only_the_flow_could_find_is_refused_before_the_run(project, monkeypatch):
    python_in(project / "configs" / ".venv-vllm")
    monkeypatch.chdir(project / "configs")
    with pytest.raises(InputError, match="no environment with vLLM"):
        check_servers(settings(processes=1), project / "runs" / "demo-1")


def test_servers_that_run_already_need_none(project):
    check_servers(settings(urls=["http://rollout-0:8000"]), project / "runs" / "demo-1")
