"""A project that uses the installed package has no code in its workspaces: pods are given a copy of it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from components.code_digest import code_digest
from components.config import load
from components.files import sha256_file, write_text
from components.installed import own_constraints, pins_digest, record
from components.launch.kubernetes.manifests import jobset
from components.launch.kubernetes.plan import plan_run
from components.pods.code import COPY, code_folder, copy_installed, extensions
from tests.kubernetes.profiles import PROFILES, ROOT, plan

PYTHON_VERIFIER = ["reward.verifier={kind: python, target: 'extensions.mine:ENTRY'}"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A workspace of such a project."""
    record(tmp_path)
    write_text(tmp_path / "constraints.txt", own_constraints("1.2.3"))
    write_text(tmp_path / "extensions" / "mine.py", "ENTRY = None\n")
    return tmp_path


def in_a_pod(workspace: Path, program: str) -> str:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(workspace / COPY), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=workspace, env=environment, check=True, capture_output=True, text=True).stdout


def test_the_copy_is_the_code_of_whoever_submits_and_fits_the_record_of_the_project(project):
    copy_installed(project)
    program = """
from pathlib import Path
from components.code_digest import code_digest
from components.installed import check_installed
check_installed(Path())
print(code_digest(), Path(__import__("components").__file__).parent)
"""
    digest, folder = in_a_pod(project, program).split()
    assert (digest, folder) == (code_digest(), str(project / COPY / "components"))


def test_a_copy_of_other_code_is_replaced_and_one_of_the_same_code_is_kept(project):
    copy_installed(project)
    changed = project / COPY / "components" / "seeds.py"
    kept = changed.stat().st_ino
    copy_installed(project)
    assert changed.stat().st_ino == kept
    write_text(changed, "")
    copy_installed(project)
    assert code_digest(project / COPY / "components") == code_digest()


def test_a_workspace_of_a_checkout_keeps_its_own_code(tmp_path):
    write_text(tmp_path / "components" / "a.py", "")
    copy_installed(tmp_path)
    assert code_folder(tmp_path) == Path() and not (tmp_path / COPY).exists()


def test_pods_import_from_the_copy_and_those_of_a_checkout_from_their_workspace():
    checkout, (config, overrides) = plan("cpu"), PROFILES["cpu"]
    own = plan_run(load(ROOT / config, overrides), replace(checkout.submission, source=COPY))
    there = own.workspace / COPY
    assert [role.env["PYTHONPATH"] for role in own.roles] == [
        str(there),
        f"{there}/components/rollout/servers/plugin:{there}",
    ]
    assert "PYTHONPATH" not in checkout.roles[0].env
    assert jobset(own) != jobset(checkout)


def test_modules_of_the_project_that_settings_name_go_with_it_and_installed_ones_do_not(project, monkeypatch):
    monkeypatch.chdir(project)
    assert extensions(project, load(ROOT / "configs/demo.yaml", PYTHON_VERIFIER)) == [Path("extensions")]
    assert extensions(project, load(ROOT / "configs/demo.yaml")) == []


def test_images_are_compared_by_the_packages_that_both_a_project_and_a_checkout_pin(project):
    assert pins_digest(project) == pins_digest(ROOT) == sha256_file(ROOT / "constraints.txt")
    write_text(project / "constraints.txt", own_constraints("1.2.3") + "more==1\n")
    assert pins_digest(project) != pins_digest(ROOT)
    assert pins_digest(project / "extensions") == ""
