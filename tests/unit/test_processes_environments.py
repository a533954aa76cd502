"""Where the Python with vLLM is, and whether it works."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from components.config import Settings
from components.errors import InputError
from components.processes import environments, vllm_python
from components.processes.environments import problem_of
from flows.post_training import check_resources
from tests.code_graph import ROOT


def python_in(environment: Path, does: str = "exit 0") -> Path:
    path = environment / "bin" / "python"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
    path.chmod(0o755)
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


def test_the_one_next_to_the_running_python_comes_first(project):
    here = python_in(project / ".venv-vllm")
    assert vllm_python(None) == here
    first = python_in(project.parent / "elsewhere" / ".venv-vllm")
    assert vllm_python(None) == first


def test_a_stage_in_the_folder_of_its_run_finds_the_one_that_the_flow_found(project, monkeypatch):
    here = python_in(project / ".venv-vllm")
    workspace = project / "runs" / "demo-1"
    check_resources(settings(processes=1), workspace)
    monkeypatch.chdir(workspace)
    assert vllm_python(None) == here


def test_one_that_only_the_flow_could_find_is_refused_before_the_run(project, monkeypatch):
    python_in(project / "configs" / ".venv-vllm")
    monkeypatch.chdir(project / "configs")
    with pytest.raises(InputError, match="no environment with vLLM"):
        check_resources(settings(processes=1), project / "runs" / "demo-1")


def test_servers_that_run_already_need_none(project):
    check_resources(settings(urls=["http://rollout-0:8000"]), project / "runs" / "demo-1")


BROKEN = "echo 'ImportError: libcudart.so.13: cannot open shared object file' >&2; exit 1"


@pytest.mark.parametrize(
    ("does", "said"),
    [(BROKEN, r"does not work: ImportError: libcudart\.so\.13"), ("exit 3", "ended with exit code 3")],
)
def test_one_that_does_not_load_torch_is_refused_before_the_run(project, does, said):
    python_in(project / ".venv-vllm", does)
    with pytest.raises(InputError, match=said) as caught:
        check_resources(settings(processes=1), project / "runs" / "demo-1")
    assert "the CPU build of torch" in str(caught.value)


def test_one_that_is_no_program_hangs_or_has_no_vllm_is_refused_too(project, monkeypatch):
    file = project / "file"
    file.touch()
    assert problem_of(file) == "Permission denied"
    assert problem_of(Path(sys.executable)) == "it has no vLLM"
    monkeypatch.setattr(environments, "PATIENCE", 0.1)
    assert problem_of(python_in(project / "slow", "exec sleep 60")) == "it did not load torch within 0.1 s"


def test_making_one_fails_where_torch_does_not_load(tmp_path):
    """A stand-in makes the environment and installs nothing; the Python there loads no torch."""
    for name in ("Makefile", "constraints-vllm.txt"):
        shutil.copy(ROOT / name, tmp_path)
    there = tmp_path / ".venv-vllm" / "bin"
    maker = python_in(tmp_path / "maker", f"mkdir -p {there}; cp {tmp_path}/made {there}/python")
    (tmp_path / "made").write_text(f'#!/bin/sh\n[ "$1" = -c ] || exit 0\n{BROKEN}\n', encoding="utf-8")
    (tmp_path / "made").chmod(0o755)
    made = subprocess.run(
        ["make", "vllm-env", f"PYTHON={maker}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert made.returncode != 0
    assert "torch does not load: is it the CPU build?" in made.stderr
    assert not (there.parent / ".installed").exists()
