"""The `evenkeel` command, without starting a run."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.settings import PREFECT_API_URL, temporary_settings
from typer.testing import CliRunner

from components.config import load
from components.errors import InputError, NoCandidate
from components.stages import wanted
from flows.budget.estimate import estimate
from flows.budget.history import record_execution
from flows.cli import app, base, main
from flows.display.summary import differences, planned_states
from flows.host.git import git
from flows.prefect_runtime.environment import prefect_environment, start_server
from flows.run.workspace import locate
from flows.serving.automations import SILENCE
from tests import fake_line
from tests.code_graph import ROOT

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_line.build(tmp_path_factory.mktemp("line"))


@pytest.fixture
def project(built: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake project as the working folder."""
    monkeypatch.chdir(built)
    return built


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of the console script."""
    monkeypatch.setattr(sys, "argv", ["evenkeel", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_params_prints_the_resolved_configuration(project: Path, tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["params", "--set", "train.steps=7"])
    (tmp_path / "params.yaml").write_text(result.output, encoding="utf-8")
    assert load(tmp_path / "params.yaml") == load(Path("configs/demo.yaml"), ["train.steps=7"])
    assert result.output.startswith("# ")


def test_the_readme_lists_every_exit_code_that_the_help_names() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = readme.partition("| exit code |")[2].partition("\n\n")[0].splitlines()[2:]
    listed = [code for row in rows for code in row.split("|")[1].replace(",", " ").split()]
    assert set(listed) == set(re.findall(r"\b\d+\b", base.HELP))


def test_a_dry_run_says_what_would_happen_as_json_too_and_makes_nothing(project: Path) -> None:
    command = ["run", "--dry-run", "--set", "train.steps=7"]
    result, found = RUNNER.invoke(app, command), json.loads(RUNNER.invoke(app, [*command, "--json"]).stdout)
    run_id = locate(project, Path("configs/demo.yaml"), ["train.steps=7"]).run_id
    assert result.exit_code == 0
    for expected in (run_id, git(project, "rev-parse", "HEAD")[:12], "evaluate", "train.steps = 7"):
        assert expected in result.output
    assert (found["run"], found["settings"]["train.steps"]) == (run_id, 7)
    assert {one["stage"] for one in found["stages"]} == set(found["states"])
    assert not (project / "runs").exists()


def test_a_dry_run_of_a_run_that_began_says_what_is_left(project: Path) -> None:
    workspace = locate(project, Path("configs/demo.yaml"), ["seed=9"])
    assert set(planned_states(workspace, estimate(workspace)).values()) == {"executed"}
    with workspace.lock():
        workspace.ensure()
    record_execution(workspace, "data", executed=True)
    fates = planned_states(workspace, estimate(workspace))
    assert fates == {stage: "cached" if stage == "data" else "executed" for stage in wanted(workspace.settings)}
    command = ["run", "--dry-run", "--fresh", "--json", "--set", "seed=9"]
    fresh = json.loads(RUNNER.invoke(app, command).stdout)
    assert set(fresh["states"].values()) == {"executed"}
    assert "unchanged" not in {one["basis"] for one in fresh["stages"]}
    assert fresh["refused"] == "", "rough guesses refuse nothing"


def test_only_settings_that_differ_from_their_defaults_are_listed(project: Path) -> None:
    settings = load(ROOT / "configs/demo.yaml", ["train.steps=7", "gate.max_unscorable=0.01"])
    listed = dict(differences(settings))
    assert listed["train.steps"] == 7
    assert "gate.max_unscorable" not in listed
    assert not [key for key in listed if key.startswith("health.rules.")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--set", "nope=1"], "nope: unknown setting"),
        (["run", "--config", "configs/absent.yaml"], "file not found"),
        (["params", "--set", "train.steps"], "--set"),
        (["approve", "0123456789ab", "--by", "Ada"], "no such candidate"),
        (["janitor", "--keep-days", "1000000"], "36500"),
        (["run", "--resume", ""], "no run is named"),
        (["cancel", ""], "no run ''"),
        (["reproduce", ""], "there is no branch runs/RUN-ID here"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    assert call(monkeypatch, *arguments) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert "Traceback" not in shown


def test_ctrl_c_while_the_command_is_being_loaded_is_an_exit_code_and_no_stack() -> None:
    stopped = """
import sys
class Stopped:
    def find_spec(name, *rest):
        if name == "flows.cli.runs":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Stopped)
import flows.cli
"""
    ended = subprocess.run([sys.executable, "-c", stopped], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")


def test_outside_a_project_the_message_says_where_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "run") == 2
    assert "not a Git repository" in capsys.readouterr().err


@pytest.mark.parametrize("debug", ["", "1"])
@pytest.mark.parametrize(("error", "code"), [(InputError("x"), 2), (NoCandidate("x"), 3)])
def test_the_exit_code_is_the_errors_own_and_debug_shows_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, code: int, debug: str
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(base, "app", fail)
    monkeypatch.setenv("EVENKEEL_DEBUG", debug)
    assert call(monkeypatch) == code
    assert ("Traceback" in capsys.readouterr().err) == bool(debug)


def test_doctor_fails_when_a_check_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = RUNNER.invoke(app, ["doctor"])
    assert result.exit_code == 2
    assert "not a Git repository" in result.output


def test_prefect_is_private_and_what_the_caller_chose_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PREFECT_HOME", "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    chosen = prefect_environment(tmp_path, quiet=True)
    assert chosen["PREFECT_HOME"] == str(tmp_path / ".state/prefect")
    assert chosen["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] == "CRITICAL"
    monkeypatch.setenv("PREFECT_HOME", "/mine")
    chosen = prefect_environment(tmp_path, quiet=False)
    assert chosen["PREFECT_LOCAL_STORAGE_PATH"] == "/mine/storage"
    assert not {"PREFECT_HOME", "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"} & set(chosen)


def test_a_run_started_by_hand_gives_signs_of_life_as_often_as_the_server_wants_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", raising=False)
    beat = int(prefect_environment(tmp_path, quiet=True)["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"])
    assert 2 * beat < SILENCE.total_seconds()


class AsksForAPassword(BaseHTTPRequestHandler):
    """As Prefect does: everybody may know that it lives."""

    def do_GET(self) -> None:
        lives = self.path == "/api/health"
        body = b"true" if lives else b"{}"
        self.send_response(200 if lives else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_that_asks_for_another_password_is_distinguished_from_one_that_is_silent() -> None:
    with HTTPServer(("127.0.0.1", 0), AsksForAPassword) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/api"
        with temporary_settings({PREFECT_API_URL: url}), pytest.raises(InputError, match="password") as refused:
            start_server()
        server.shutdown()
    assert "PREFECT_API_AUTH_STRING" in str(refused.value)


def declared() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    return found


@pytest.mark.parametrize("deployment", declared(), ids=lambda deployment: deployment["name"])
def test_a_deployment_points_to_the_flow_of_its_name_and_takes_parameters_that_it_has(deployment) -> None:
    module, _, name = deployment["entrypoint"].rpartition(".")
    flow = getattr(importlib.import_module(module), name)
    assert (module, name) == (f"flows.{name}", deployment["name"].replace("-", "_"))
    assert flow.name == deployment["name"]
    signature = inspect.signature(flow.fn).parameters
    given = {key for row in [deployment, *deployment.get("triggers", [])] for key in row.get("parameters", {})}
    assert given <= set(signature)
    needed = {key for key, parameter in signature.items() if parameter.default is inspect.Parameter.empty}
    if deployment.get("schedules") or deployment.get("triggers"):
        assert needed <= given, "no person fills in the form"
    assert deployment["description"]
