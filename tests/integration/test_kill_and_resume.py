"""A stage that is killed at any moment continues from its last checkpoint and ends with the same bytes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from components.config import dump, load
from components.files import manifest, write_jsonl
from tests.integration.small import NO_LIMITS, SMALL

PROJECT = Path(__file__).parents[2]
TRAINING = ("train", "records.jsonl", 8)
DPO = ("dpo.steps=12", "dpo.batch_size=4", "dpo.checkpoint_every=5", "dpo.held_out=0", "dpo.pairs={path: pairs.jsonl}")
pytestmark = pytest.mark.integration


def stage(name: str, folder: Path) -> subprocess.Popen[str]:
    """Start a stage in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "components", name],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(name: str, folder: Path) -> None:
    process = stage(name, folder)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors


def kill_when(process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
    """SIGKILL the whole session as soon as the condition holds; it must hold before the stage has ended."""
    deadline = time.monotonic() + 120
    while not reached():
        assert process.poll() is None, "the stage ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every stage that can be resumed, and those before it, ran undisturbed, all in one process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    settings = load(PROJECT / "configs" / "demo.yaml", [*SMALL, *NO_LIMITS, *DPO])
    (folder / "params.yaml").write_text(dump(settings))
    write_jsonl(
        folder / "pairs.jsonl", ({"prompt": f"{i}+1=", "chosen": f"#{i + 1}", "rejected": "#"} for i in range(9))
    )
    every = [[name] for name in ("data", "audit", "sft", "admission", "triage", "clusters", "train", "dpo")]
    line = f"import sys\nfrom components.command import main\nsys.exit(max(main(stage) for stage in {every}))"
    done = subprocess.run(
        [sys.executable, "-c", line],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def before(finished: Path, tmp_path: Path) -> Callable[[str, str], Path]:
    """A copy of that folder from before a stage ran."""

    def copy(output: str, state: str) -> Path:
        shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
        shutil.rmtree(tmp_path / "out" / output)
        shutil.rmtree(tmp_path / ".state" / state)
        return tmp_path

    return copy


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "log", "rows"),
    [("sft", "log.jsonl", 13), ("train", "records.jsonl", 1), TRAINING, ("dpo", "log.jsonl", 7)],
)
def test_killed_and_resumed_it_gives_the_same_bytes(
    finished: Path, before: Callable[[str, str], Path], name: str, log: str, rows: int
) -> None:
    folder = before(name, name)
    kill_when(stage(name, folder), lambda: lines(folder / ".state" / name / log) >= rows)
    assert not (folder / "out" / name).exists()
    finish(name, folder)
    assert manifest(folder / "out" / name) == manifest(finished / "out" / name)
    assert (folder / "out" / f"{name}.json").read_bytes() == (finished / "out" / f"{name}.json").read_bytes()


@pytest.mark.slow
def test_training_killed_twice_in_the_middle_of_a_checkpoint(
    finished: Path, before: Callable[[str, str], Path]
) -> None:
    folder = before("train", "train")
    state = folder / ".state" / "train"
    for step in (3, 6):
        kill_when(
            stage("train", folder),
            lambda step=step: any(state.glob(f".step-{step:06d}*")) or (state / f"step-{step:06d}").exists(),
        )
    finish("train", folder)
    assert manifest(folder / "out" / "train") == manifest(finished / "out" / "train")


@pytest.mark.slow
def test_training_that_samples_ahead_killed_in_the_middle(finished: Path, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("undisturbed", "killed")]
    for folder in folders:
        shutil.copytree(finished, folder)
        shutil.rmtree(folder / "out" / "train")
        shutil.rmtree(folder / ".state" / "train")
        ahead = ["rollout.asynchrony={max_staleness: 2}"]
        (folder / "params.yaml").write_text(dump(load(finished / "params.yaml", ahead)))
    finish("train", folders[0])
    for rows in (4, 8):
        kill_when(
            stage("train", folders[1]), lambda rows=rows: lines(folders[1] / ".state/train/records.jsonl") >= rows
        )
    finish("train", folders[1])
    assert manifest(folders[1] / "out" / "train") == manifest(folders[0] / "out" / "train")
