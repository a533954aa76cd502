"""Two nodes of a learner, as their containers start them: what happens to each when another one stops or dies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from components.files import read_jsonl
from components.processes import free_port
from tests.integration.runs import kill, prepared, rows, start, steps, trained, when

pytestmark = [pytest.mark.integration, pytest.mark.slow]
STAGE = ("components.pods.learner", "train", "--config", "settings.yaml", "--nodes", "2", "--processes", "1")
KINDS = {"zero-2": {"kind": "deepspeed"}, "fsdp2": {"kind": "fsdp2"}}
CASES = [(kind, number) for kind in KINDS for number in (0, 1)]
Process = subprocess.Popen[bytes]


def sections(kind: str) -> dict[str, Any]:
    return {
        "learner": {**KINDS[kind], "ranks": {"processes": 2, "start_timeout": 120, "reply_timeout": 60}},
        "train": {"steps": 60, "checkpoint_every": 20, "eval_every": 9},
        "rollout": {"dynamic_sampling": None},
        "launch": {"kind": "processes"},
    }


@contextmanager
def nodes(root: Path, second: Path | None = None) -> Iterator[list[Process]]:
    """The containers of one attempt; the second node in another folder where one is given."""
    shared = {"EVENKEEL_LINGER": "0.1", "GLOO_SOCKET_IFNAME": "lo"}
    command = (*STAGE, "--rendezvous", f"127.0.0.1:{free_port()}")
    folders = (root, second or root)
    own = [{"JOB_COMPLETION_INDEX": str(n), "EVENKEEL_TERMINATION_LOG": str(root / f"words-{n}.txt")} for n in (0, 1)]
    found = [start(folder, command, **shared, **one) for folder, one in zip(folders, own, strict=True)]
    try:
        yield found
    finally:
        for process in found:
            kill(process)


def said(root: Path) -> str:
    return (root / "output.txt").read_text()[-4000:]


def goes_on(root: Path, second: Path | None = None) -> None:
    with nodes(root, second) as found:
        assert [node.wait(240) for node in found] == [0, 0], said(root)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Kind -> the workspace of a run of this kind that nothing disturbed."""
    roots = {}
    for kind in KINDS:
        roots[kind] = tmp_path_factory.mktemp(kind)
        prepared(roots[kind], **sections(kind))
        goes_on(roots[kind])
        records = read_jsonl(roots[kind] / "out/train/records.jsonl")
        assert sum("grad_norm" in row["signals"] for row in records) > 20
    return roots


@pytest.mark.parametrize(("kind", "number"), CASES)
def test_a_node_that_is_drained_stops_the_run_which_loses_nothing(kind, number, tmp_path, whole):
    prepared(tmp_path, **sections(kind))
    with nodes(tmp_path) as found:
        when(lambda: rows(tmp_path) > 4, found[0])
        found[number].send_signal(signal.SIGTERM)
        begun = time.monotonic()
        assert [node.wait(60) for node in found] == [143, 143 if number == 1 else 0], said(tmp_path)
        assert time.monotonic() - begun < 40
    assert "the checkpoint of step" in (tmp_path / "words-0.txt").read_text()
    assert steps(tmp_path)[-1] >= 4
    goes_on(tmp_path)
    assert trained(tmp_path) == trained(whole[kind])


@pytest.mark.parametrize(("kind", "number"), CASES)
def test_a_node_that_dies_ends_the_run_which_goes_on_from_its_newest_checkpoint(kind, number, tmp_path, whole):
    prepared(tmp_path, **sections(kind))
    with nodes(tmp_path) as found:
        when(lambda: max(steps(tmp_path), default=0) >= 20, found[0])
        kill(found[number])
        assert found[1 - number].wait(90) == 75, said(tmp_path)
    goes_on(tmp_path)
    assert trained(tmp_path) == trained(whole[kind])


@pytest.mark.parametrize("number", [0, 1])
def test_a_rank_that_is_killed_is_the_fault_of_its_node_and_the_other_one_has_lost_it(number, tmp_path):
    prepared(tmp_path, **sections("fsdp2"))
    with nodes(tmp_path) as found:
        when(lambda: rows(tmp_path) > 4, found[0])
        (rank,) = [p for p in psutil.Process(found[number].pid).children(recursive=True) if "RANK" in p.environ()]
        os.kill(rank.pid, signal.SIGKILL)
        assert found[number].wait(90) == 137, said(tmp_path)
        assert found[1 - number].wait(90) == 75, said(tmp_path)
    words = (tmp_path / f"words-{number}.txt").read_text()
    assert ("stage train was ended by signal 9" if number == 0 else "node 1 failed with exit code 137") in words


def test_a_stage_that_refuses_its_input_ends_both_nodes(tmp_path):
    layout = prepared(tmp_path, **sections("fsdp2"))
    layout.triage.unlink()
    with nodes(tmp_path) as found:
        assert [node.wait(90) for node in found] == [2, 75], said(tmp_path)
    assert "run the triage stage first" in (tmp_path / "words-0.txt").read_text()


def test_ranks_that_wait_for_rank_0_to_load_end_at_once_when_they_receive_sigterm(tmp_path):
    prepared(tmp_path, **sections("fsdp2"))
    with nodes(tmp_path) as found:
        when(
            lambda: any("RANK" in p.environ() for p in psutil.Process(found[1].pid).children(recursive=True)), found[1]
        )
        for node in found:
            node.send_signal(signal.SIGTERM)
        assert [node.wait(25) for node in found] == [143, 143], said(tmp_path)


def test_nodes_that_wait_for_others_end_at_once_when_they_receive_sigterm(tmp_path):
    prepared(tmp_path, **sections("fsdp2"))
    command = (*STAGE, "--rendezvous", f"127.0.0.1:{free_port()}")
    alone = start(tmp_path, command, JOB_COMPLETION_INDEX="0")
    time.sleep(8)
    alone.send_signal(signal.SIGTERM)
    assert alone.wait(10) == 143


def test_the_second_node_needs_code_and_settings_and_no_other_file_of_the_run(tmp_path, whole):
    root, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    prepared(root, **sections("fsdp2"))
    elsewhere.mkdir()
    for name in ("settings.yaml", "judge"):
        (shutil.copytree if (root / name).is_dir() else shutil.copy)(root / name, elsewhere / name)
    with nodes(root, elsewhere) as found:
        when(lambda: max(steps(root), default=0) >= 20, found[0])
        found[1].send_signal(signal.SIGTERM)
        assert [node.wait(60) for node in found] == [143, 143], said(root)
    goes_on(root, elsewhere)
    assert trained(root) == trained(whole["fsdp2"])
    assert sorted(path.name for path in elsewhere.iterdir()) == ["judge", "output.txt", "settings.yaml"]
