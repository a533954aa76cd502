"""Two nodes of a learner and a driver, as their containers start them: what becomes of each when another one stops or
dies."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from components.files import read_jsonl
from components.processes import free_port
from tests.integration.runs import kill, prepared, rows, start, steps, trained, when

pytestmark = pytest.mark.integration
DRIVER = ("components.pods.driver", "train", "--config", "settings.yaml")
KINDS = {"zero-2": {"kind": "deepspeed"}, "fsdp2": {"kind": "fsdp2"}}
Process = subprocess.Popen[bytes]


def sections(kind: str, port: int, **ranks_: Any) -> dict[str, Any]:
    ranks = {"processes": 2, "address": f"127.0.0.1:{port}", "start_timeout": 120, "reply_timeout": 60, **ranks_}
    return {
        "learner": {**KINDS[kind], "ranks": ranks},
        "train": {"steps": 60, "checkpoint_every": 20, "eval_every": 9},
        "rollout": {"dynamic_sampling": None},
    }


@dataclass
class Pods:
    """The containers of one attempt."""

    driver: Process
    nodes: list[Process]

    def ended(self, seconds: float = 60) -> tuple[int, list[int]]:
        """Exit codes of the driver and of the nodes."""
        return self.driver.wait(seconds), [node.wait(seconds) for node in self.nodes]


@contextmanager
def pods(root: Path, port: int, nodes_in: Path | None = None) -> Iterator[Pods]:
    """A driver and two nodes, the latter in another folder where one is given."""
    meeting = f"127.0.0.1:{free_port()}"
    shared = {"EVENKEEL_LEARNER_KEY": "secret", "EVENKEEL_LINGER": "0.1", "GLOO_SOCKET_IFNAME": "lo"}
    node = ("components.pods.learner", "--nodes", "2", "--processes", "1", "--rendezvous", meeting)
    listen = {"EVENKEEL_LEARNER_LISTEN": f"127.0.0.1:{port}"}
    nodes = [start(nodes_in or root, node, **shared, **listen, JOB_COMPLETION_INDEX=str(number)) for number in (0, 1)]
    found = Pods(start(root, DRIVER, **shared), nodes)
    try:
        yield found
    finally:
        for process in (found.driver, *nodes):
            kill(process)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {}


def whole(kind: str, undisturbed: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of this kind that nobody disturbed."""
    if kind not in undisturbed:
        root, port = tmp_path_factory.mktemp(kind), free_port()
        prepared(root, **sections(kind, port))
        with pods(root, port) as found:
            assert found.ended(240) == (0, [0, 0]), (root / "output.txt").read_text()[-3000:]
        assert sum("grad_norm" in row["signals"] for row in read_jsonl(root / "out/train/records.jsonl")) > 20
        undisturbed[kind] = root
    return undisturbed[kind]


def goes_on(root: Path, port: int) -> None:
    with pods(root, port) as found:
        assert found.ended(240) == (0, [0, 0]), (root / "output.txt").read_text()[-3000:]


CASES = [(kind, number) for kind in KINDS for number in (0, 1)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "number"), CASES)
def test_a_node_that_is_drained_stops_the_run_which_loses_nothing(
    kind, number, tmp_path, undisturbed, tmp_path_factory
):
    expected, port = whole(kind, undisturbed, tmp_path_factory), free_port()
    prepared(tmp_path, **sections(kind, port))
    with pods(tmp_path, port) as found:
        when(lambda: rows(tmp_path) > 4, found.driver)
        found.nodes[number].send_signal(signal.SIGTERM)
        asked = time.monotonic()
        driver, nodes = found.ended()
        assert time.monotonic() - asked < 40
    assert driver == 143, (tmp_path / "output.txt").read_text()[-3000:]
    assert nodes[number] == 143
    assert nodes[1 - number] == 0
    assert steps(tmp_path)[-1] >= 4
    goes_on(tmp_path, port)
    assert trained(tmp_path) == trained(expected)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "number"), CASES)
def test_a_node_that_dies_ends_the_run_which_goes_on_from_its_newest_checkpoint(
    kind, number, tmp_path, undisturbed, tmp_path_factory
):
    expected, port = whole(kind, undisturbed, tmp_path_factory), free_port()
    prepared(tmp_path, **sections(kind, port))
    with pods(tmp_path, port) as found:
        when(lambda: max(steps(tmp_path), default=0) >= 20, found.driver)
        kill(found.nodes[number])
        assert found.driver.wait(60) == 75, (tmp_path / "output.txt").read_text()[-3000:]
        assert found.nodes[1 - number].wait(60) == 75
    goes_on(tmp_path, port)
    assert trained(tmp_path) == trained(expected)


@pytest.mark.slow
def test_a_rank_that_dies_is_its_nodes_fault_and_the_others_misfortune(tmp_path):
    port = free_port()
    prepared(tmp_path, **sections("fsdp2", port))
    with pods(tmp_path, port) as found:
        when(lambda: rows(tmp_path) > 4, found.driver)
        (rank,) = [p for p in psutil.Process(found.nodes[1].pid).children(recursive=True) if "RANK" in p.environ()]
        os.kill(rank.pid, signal.SIGKILL)
        assert found.ended() == (75, [75, 1])


@pytest.mark.slow
def test_a_driver_that_is_asked_to_stop_ends_the_learner_too(tmp_path, undisturbed, tmp_path_factory):
    expected, port = whole("fsdp2", undisturbed, tmp_path_factory), free_port()
    prepared(tmp_path, **sections("fsdp2", port))
    with pods(tmp_path, port) as found:
        when(lambda: rows(tmp_path) > 4, found.driver)
        found.driver.send_signal(signal.SIGTERM)
        assert found.ended() == (143, [0, 0])
    goes_on(tmp_path, port)
    assert trained(tmp_path) == trained(expected)


@pytest.mark.slow
def test_nodes_that_wait_for_others_end_at_once_when_they_are_asked_to(tmp_path):
    prepared(tmp_path)
    node = ("components.pods.learner", "--nodes", "2", "--processes", "1", "--rendezvous", f"127.0.0.1:{free_port()}")
    alone = start(tmp_path, node, JOB_COMPLETION_INDEX="0", EVENKEEL_LEARNER_KEY="secret")
    time.sleep(8)
    alone.send_signal(signal.SIGTERM)
    assert alone.wait(10) == 143


@pytest.mark.slow
@pytest.mark.parametrize("both", [True, False])
def test_nodes_that_wait_for_their_run_end_at_once_when_they_are_asked_to(tmp_path, both):
    prepared(tmp_path)
    own = {"EVENKEEL_LEARNER_KEY": "secret", "EVENKEEL_LEARNER_LISTEN": f"127.0.0.1:{free_port()}"}
    node = ("components.pods.learner", "--nodes", "2", "--processes", "1", "--rendezvous", f"127.0.0.1:{free_port()}")
    own |= {"EVENKEEL_LINGER": "0.1", "GLOO_SOCKET_IFNAME": "lo"}
    nodes = [start(tmp_path, node, **own, JOB_COMPLETION_INDEX=str(number)) for number in (0, 1)]
    try:
        when(lambda: (tmp_path / "output.txt").read_text().count("waits for the run") == 2, nodes[0])
        for one in nodes if both else nodes[1:]:
            one.send_signal(signal.SIGTERM)
        assert [one.wait(30) for one in (nodes if both else nodes[1:])] == [143] * (2 if both else 1)
    finally:
        for one in nodes:
            kill(one)


@pytest.mark.slow
def test_a_learner_without_the_key_of_its_run_is_refused(tmp_path, monkeypatch):
    prepared(tmp_path)
    monkeypatch.delenv("EVENKEEL_LEARNER_KEY", raising=False)
    node = ("components.pods.learner", "--nodes", "1", "--processes", "1", "--rendezvous", f"127.0.0.1:{free_port()}")
    assert start(tmp_path, node).wait(120) == 2
    assert "EVENKEEL_LEARNER_KEY is not set" in (tmp_path / "output.txt").read_text()
    assert "a rank was refused" in (tmp_path / "last-words.txt").read_text()


@pytest.mark.slow
def test_nodes_that_see_no_folder_of_the_run_make_the_same_run(tmp_path, undisturbed, tmp_path_factory):
    expected, port = whole("fsdp2", undisturbed, tmp_path_factory), free_port()
    root, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    prepared(root, **sections("fsdp2", port, shared_folder=False))
    elsewhere.mkdir()
    with pods(root, port, elsewhere) as found:
        when(lambda: max(steps(root), default=0) >= 20, found.driver)
        found.nodes[1].send_signal(signal.SIGTERM)
        assert found.ended() == (143, [0, 143])
    with pods(root, port, elsewhere) as found:
        assert found.ended(240) == (0, [0, 0]), (root / "output.txt").read_text()[-3000:]
    assert trained(root) == trained(expected)
    assert not [path for path in elsewhere.rglob("*") if path.suffix in (".safetensors", ".part")]
