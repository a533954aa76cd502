"""The process that follows a run, with a sink of the page docs/extend.md; and that no run depends on any sink."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from factories import settings as training
from report_fixture import healthy
from report_pages import page
from sink_runs import Log, response
from test_docs_examples import NEW_FILE
from training_runs import outputs, train

from components.config import dump, load, pin_inputs
from components.config.extensions import python_entries
from components.config.targets import check_code_of
from components.errors import InputError
from components.extensions import check_extensions
from components.files import write_text
from components.processes.living import lives
from flows.host import doctor
from flows.run.workspace import name_of
from flows.watching import tracking
from tests.code_graph import ROOT

EXAMPLES = {found["path"]: found["body"] for found in NEW_FILE.finditer((ROOT / "docs/extend.md").read_text("utf-8"))}
SINK = "sinks.files={kind: python, target: 'extensions.folder:SINK', settings: {folder: tracked}}"
OFF = "sinks.tensorboard=null"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    """A workspace of a project whose working folder has the example."""
    write_text(tmp_path / "extensions/folder.py", EXAMPLES["extensions/folder.py"])
    monkeypatch.chdir(tmp_path)
    log = Log(tmp_path / "runs/demo-1")
    write_text(log.layout.params, dump(load(ROOT / "configs/demo.yaml", [SINK, OFF])))
    return log


def tracked(log: Log) -> dict[int, float]:
    (folder,) = Path("tracked").iterdir()
    assert folder.name == f"demo-1-{(log.layout.state / 'sinks/key').read_text()}"
    return {int(path.stem): json.loads(path.read_text())["train/reward"] for path in folder.glob("*.json")}


def test_a_run_that_is_over_is_sent_and_a_second_time_only_what_is_new(log: Log) -> None:
    said: list[str] = []
    log.steps(0, 3)
    log.enter(response(1, 2))
    assert tracking.track(log.layout.root, said.append, 60)
    assert tracked(log) == {0: 0.0, 1: 1.0, 2: 2.0}
    Path("tracked").joinpath(next(Path("tracked").iterdir()).name, "0.json").unlink()
    log.steps(3, 5)
    assert tracking.track(log.layout.root, said.append, 60)
    assert sorted(tracked(log)) == [1, 2, 3, 4] and said == []


def test_a_sink_that_fails_is_said_with_how_to_send_the_rest(log: Log) -> None:
    said: list[str] = []
    log.steps(0, 3)
    Path("tracked").touch()  # a file where the folder must be
    assert not tracking.track(log.layout.root, said.append, 60)
    assert "nothing can be sent to files" in said[0]
    assert f"`evenkeel track {log.layout.root.name}` sends the rest" in said[-1]


def test_a_sink_whose_code_is_gone_is_off_and_nothing_else(log: Log) -> None:
    said: list[str] = []
    log.steps(0, 1)
    Path("extensions/folder.py").unlink()
    assert tracking.track(log.layout.root, said.append, 60)
    assert "files is off: there is no module" in said[0]


def test_it_ends_with_the_run_that_started_it_however_that_ends(log: Log) -> None:
    log.steps(0, 2)
    code = (
        f"import os; from pathlib import Path; from flows.watching.tracking import start; "
        f"print(start(Path({str(log.layout.root)!r}), 20.0).pid, flush=True); os._exit(9)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True, check=False)
    pid, deadline = int(done.stdout), time.monotonic() + 60
    while lives_still(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not lives_still(pid) and sorted(tracked(log)) == [0, 1]


def lives_still(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and lives(pid)


class Logger:
    """Of a flow run."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, text: str, *values: object) -> None:
        self.lines.append(text % values)

    def warning(self, text: str) -> None:
        self.lines.append(f"warning: {text}")


@pytest.fixture
def logger(monkeypatch: pytest.MonkeyPatch) -> Logger:
    logger = Logger()
    monkeypatch.setattr(tracking, "get_run_logger", lambda: logger)
    return logger


def test_while_a_flow_works_its_run_is_sent_and_the_log_says_where(log: Log, logger: Logger) -> None:
    with tracking.tracked(load(log.layout.params), log.layout.root):
        log.steps(0, 3)
    assert sorted(tracked(log)) == [0, 1, 2]
    assert logger.lines == ["sinks: files"]


def test_a_flow_without_sinks_starts_no_process(log: Log, logger: Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking.subprocess, "Popen", pytest.fail)
    with tracking.tracked(load(ROOT / "configs/demo.yaml", [OFF]), log.layout.root):
        pass
    assert logger.lines == ["sinks: none"]


def test_a_flow_that_fails_does_not_wait_for_its_sinks(
    log: Log, logger: Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = []
    monkeypatch.setattr(tracking.subprocess.Popen, "wait", lambda *_: waited.append(True))
    with pytest.raises(ZeroDivisionError), tracking.tracked(load(log.layout.params), log.layout.root):
        raise ZeroDivisionError
    assert waited == []


# No part of a run


def test_training_writes_the_same_bytes_with_sinks_and_without(tmp_path: Path) -> None:
    on = {"prometheus": {"textfile": tmp_path / "evenkeel.prom"}}
    without = train(tmp_path / "without", training(sinks={"tensorboard": None}))
    shown = train(tmp_path / "with", training(health=on, sinks={"mine": {"kind": "mlflow"}}))
    assert (tmp_path / "evenkeel.prom").exists()
    assert outputs(without) == outputs(shown)


def test_the_report_and_the_name_of_a_run_are_the_same_with_sinks_and_without(tmp_path: Path) -> None:
    layout, sink = healthy(tmp_path), "sinks.mine={kind: mlflow, uri: 'http://tracker'}"
    assert page(layout) == page(layout, sink)
    assert name_of(load(ROOT / "configs/demo.yaml"), "t") == name_of(load(ROOT / "configs/demo.yaml", [sink]), "t")


def test_the_code_of_a_sink_is_not_digested_and_no_stage_asks_for_it(log: Log) -> None:
    pinned = pin_inputs(load(ROOT / "configs/demo.yaml", [SINK, OFF]))
    assert [entry.sha256 for _, entry in python_entries(pinned)] == [None]
    Path("extensions/folder.py").unlink()
    check_code_of(pinned)


def test_a_run_does_not_start_with_a_sink_that_cannot_be_loaded(log: Log) -> None:
    wanted = load(ROOT / "configs/demo.yaml", [SINK])
    write_text(
        Path("extensions/folder.py"),
        EXAMPLES["extensions/folder.py"].replace("FolderSink, Settings", 'FolderSink, Settings, "absent"'),
    )
    with pytest.raises(InputError, match=r"sinks\.files: .*\n.*the package 'absent' that it needs is not installed"):
        check_extensions(wanted)


@pytest.mark.parametrize(
    ("sinks", "state", "says"),
    [
        ("{tensorboard: null}", "ok", "none"),
        ("{mine: {kind: wandb}}", "fail", "the package of sinks.mine is not installed"),
    ],
)
def test_the_doctor_knows_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sinks: str, state: str, says: str
) -> None:
    monkeypatch.setattr("components.sinks.base.find_spec", lambda name: None)
    write_text(tmp_path / "run.yaml", f"extends: {ROOT}/configs/demo.yaml\nsinks: {sinks}\n")
    (check,) = doctor.sinks(load(tmp_path / "run.yaml"))
    assert (check.state, check.finding) == (state, says)
