"""A run that receives SIGTERM writes a checkpoint within moments, and resumes to the same bytes."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from components.config import load
from components.files import read_json, read_jsonl
from components.launch import Job
from components.launch.processes import ProcessLauncher
from tests.integration.runs import prepared, rows, start, steps, trained, when

pytestmark = pytest.mark.integration
TRAIN = ("components", "train", "--config", "settings.yaml")
LONG = {"train": {"steps": 40, "checkpoint_every": 100, "eval_every": 7}, "rollout": {"dynamic_sampling": None}}
"""Makes no checkpoint of itself but at both ends."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("undisturbed")
    prepared(root, **LONG)
    assert start(root, TRAIN).wait(240) == 0, (root / "output.txt").read_text()
    assert sum("grad_norm" in row["signals"] for row in read_jsonl(root / "out/train/records.jsonl")) > 10
    return root


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.8])
def test_asked_at_any_moment_it_ends_with_143_and_goes_on_to_the_same_bytes(undisturbed, tmp_path, delay):
    prepared(tmp_path, **LONG)
    process = start(tmp_path, TRAIN)
    when(lambda: bool(steps(tmp_path)), process)
    time.sleep(delay)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    status = read_json(tmp_path / ".state/status/train.json")
    made = steps(tmp_path)[-1]
    assert status["exit_code"] == 143
    assert f"the checkpoint of step {made} is whole" in status["message"]
    assert made >= rows(tmp_path) - 1
    assert start(tmp_path, TRAIN).wait(240) == 0
    assert trained(tmp_path) == trained(undisturbed)


@pytest.mark.slow
def test_asked_before_there_is_anything_to_save_it_ends_at_once(undisturbed, tmp_path):
    for delay in (0.7, 1.5, 2.5):
        root = tmp_path / str(delay)
        root.mkdir()
        prepared(root, **LONG)
        process = start(root, TRAIN)
        time.sleep(delay)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (143, -signal.SIGTERM)  # Python itself was still starting
        assert start(root, TRAIN).wait(240) == 0
        assert trained(root) == trained(undisturbed)


def test_another_stage_ends_at_once_and_says_so(tmp_path):
    prepared(tmp_path)
    (tmp_path / "judge" / "sitecustomize.py").write_text(
        "import sys\nif 'components' in sys.orig_argv:\n    import time\n    from components import stages\n"
        "    stages.STAGES['gate'] = 'endless'\n"
    )
    (tmp_path / "judge" / "endless.py").write_text(
        "import pathlib, time\ndef run(*_):\n    pathlib.Path('begun').touch()\n    time.sleep(60)\n"
    )
    process = start(tmp_path, ("components", "gate", "--config", "settings.yaml"))
    when(lambda: (tmp_path / "begun").exists(), process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 143
    assert read_json(tmp_path / ".state/status/gate.json")["exit_code"] == 143


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["torch", "fsdp2"])
def test_a_cancelled_job_writes_its_checkpoint_and_goes_on(undisturbed, tmp_path, kind, monkeypatch):
    learner = {"learner": {"kind": kind}} if kind != "torch" else {}
    prepared(tmp_path, **LONG, **learner, launch={"kind": "processes"})
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'judge'}:{Path(__file__).parents[2]}")
    launcher = ProcessLauncher()
    job = Job("train", load(tmp_path / "settings.yaml"), tmp_path)
    job_id = launcher.submit(job)
    _until(lambda: rows(tmp_path) > 3)
    launcher.cancel(job_id)
    status = launcher.status(job_id)
    assert (status.state, status.exit_code) == ("cancelled", 143)  # of itself: the time that it has was enough
    assert steps(tmp_path)[-1] >= 3
    assert launcher.wait(launcher.submit(job), poll=0.1).state == "succeeded"
    if kind == "torch":
        assert trained(tmp_path) == trained(undisturbed)


def _until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)
