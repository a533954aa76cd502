"""A stage in pods that share no folder: whatever happens to one, the next goes on, to the same end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from components.code_digest import code_digest
from components.config import load
from components.pods.depot import Depot
from components.pods.parcels import parcels
from components.pods.workspace import put_input, take_output
from components.status import StageStatus
from tests.code_graph import ROOT
from tests.integration.runs import kill, prepared, rows, start, steps, trained, when
from tests.s3_server import BUCKET, KEYS, PATIENCE, S3Server

pytestmark = pytest.mark.integration
CONFIG = "settings.yaml"
LONG = {"train": {"steps": 100, "checkpoint_every": 10, "eval_every": 9}, "rollout": {"dynamic_sampling": None}}


def workspace(root: Path) -> Path:
    """A run's workspace with its own copy of the code."""
    layout = prepared(root, **LONG)
    for extra in (layout.consistency, layout.clusters_metrics):
        extra.write_text("null\n")
    for folder in ("components", "configs"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("dvc.yaml", "constraints.txt"):
        shutil.copy(ROOT / file, root)
    return root


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = workspace(tmp_path_factory.mktemp("undisturbed"))
    assert start(root, ("components.pods.learner", "train", "--config", CONFIG)).wait(240) == 0
    return root


@pytest.fixture
def depot(s3_server: S3Server) -> Depot:
    return Depot(f"s3://{BUCKET}/runs/{uuid4().hex}", s3_server.url, transfer=PATIENCE)


@pytest.fixture
def submitted(tmp_path: Path, depot: Depot) -> Path:
    root = workspace(tmp_path / "workspace")
    put_input(root, depot, "train", load(root / CONFIG), Path(CONFIG))
    return root


Pod = Callable[[str], tuple[Path, "subprocess.Popen[bytes]"]]


@pytest.fixture
def pod(tmp_path: Path, depot: Depot) -> Pod:
    """Starts the stage in a new pod, which has nothing but what it fetches."""
    environment = {**KEYS, "AWS_ENDPOINT_URL": str(depot.endpoint_url), "EVENKEEL_LINGER": "0.1"}

    def begin(name: str) -> tuple[Path, subprocess.Popen[bytes]]:
        root = tmp_path / name
        root.mkdir()
        shutil.copytree(tmp_path / "workspace" / "judge", root / "judge")
        assert start(root, ("components.pods.fetch", depot.uri, str(root)), **environment).wait(60) == 0
        command = ("components.pods.learner", "train", "--config", CONFIG, "--state", depot.uri)
        return root, start(root, command, **environment, EVENKEEL_CODE=code_digest())

    return begin


def said(root: Path) -> str:
    return (root / "output.txt").read_text()[-3000:]


@pytest.mark.slow
def test_a_pod_passes_sigterm_on_to_its_stage(tmp_path):
    prepared(tmp_path, **LONG)
    process = start(tmp_path, ("components.pods.learner", "train", "--config", CONFIG))
    when(lambda: rows(tmp_path) > 2, process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    assert f"the checkpoint of step {steps(tmp_path)[-1]} is whole" in (tmp_path / "last-words.txt").read_text()


@pytest.mark.slow
def test_killed_and_stopped_in_one_pod_after_another_the_run_comes_to_the_same_end(undisturbed, submitted, pod, depot):
    def stored() -> list[str]:
        return parcels(depot.bucket("state"))

    root, process = pod("killed")
    when(lambda: bool(stored()) and stored()[-1] >= "000001-00000010.json", process)
    kill(process)
    root, process = pod("stopped")
    when(lambda: "was brought here" in said(root), process)
    begun = rows(root)
    when(lambda: rows(root) > begun + 3, process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143, said(root)
    newest = steps(root)[-1]
    assert stored()[-1] == f"000002-{newest:08d}.json"  # it waited until that was safe
    root, process = pod("finished")
    assert process.wait(240) == 0, said(root)
    assert f"the checkpoint of step {newest} was brought here" in (root / "output.txt").read_text()
    assert take_output(submitted, depot, "train") == StageStatus(0)
    assert trained(submitted) == trained(undisturbed)
    assert (submitted / "out/train.json").read_bytes() == (undisturbed / "out/train.json").read_bytes()


@pytest.mark.slow
def test_an_old_pod_that_is_not_quite_dead_gives_way(undisturbed, submitted, pod, depot):
    old, former = pod("old")
    when(lambda: bool(parcels(depot.bucket("state"))), former)
    stopped = [former.pid, *_below(former.pid)]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    new, latter = pod("new")
    when(lambda: "was brought here" in said(new), latter)
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    assert former.wait(120) == 75, said(old)
    assert "another pod has taken this run over" in (old / "last-words.txt").read_text()
    assert latter.wait(240) == 0, said(new)
    assert take_output(submitted, depot, "train") == StageStatus(0)
    assert trained(submitted) == trained(undisturbed)


def _below(pid: int) -> list[int]:
    return [one.pid for one in psutil.Process(pid).children(recursive=True)]
