"""Ranks that something else has started, in pods of their own: they serve a run that knows the key."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from components.errors import InputError
from components.files import manifest
from components.learner import build_learner
from components.learner.remote import folders
from components.learner.remote.link import client
from components.processes import Child, free_port

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from factories import policy

from tests.integration.ranks import FSDP2, KINDS, alone, how, near, saved, steps

pytestmark = pytest.mark.integration


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, Child]]:
    """Two ranks under torchrun; the address of rank 0, and torchrun."""
    address = f"127.0.0.1:{free_port()}"
    env = {"EVENKEEL_LEARNER_LISTEN": address, "EVENKEEL_LEARNER_KEY": "secret", "OMP_NUM_THREADS": "1"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*torchrun, "-m", "components.learner.worker"]
    with Child("torchrun", command, log=folder / "torchrun.log", env=env) as child:
        yield address, child


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["zero-2", "zero-3", "fsdp2"])
def test_what_is_saved_and_loaded_is_that_of_ranks_that_see_the_folders(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "PIECE", 1000)
    monkeypatch.setenv("EVENKEEL_LEARNER_KEY", "secret")
    found = []
    for name, shared in (("shared", True), ("apart", False)):
        ranks = {"start_timeout": 120, "shared_folder": shared}
        with (
            served(tmp_path / name) as (address, _),
            closing(build_learner(policy(), how(**KINDS[kind], ranks_={**ranks, "address": address}))) as learner,
        ):
            before = steps(learner, [0, 1])
            folder = saved(learner, tmp_path / name / "state")
            after = steps(learner, [2])
            learner.load(folder)
            again = steps(learner, [2])
            learner.save_policy(tmp_path / name / "policy")
        assert again == after
        found.append((before, after, manifest(folder), manifest(tmp_path / name / "policy")))
    assert found[0] == found[1]


@pytest.mark.slow
def test_they_refuse_a_run_with_another_key_and_follow_the_loss_curve_of_one_process(tmp_path, monkeypatch):
    with served(tmp_path) as (address, child):
        chosen = how(**FSDP2, ranks_={"address": address, "start_timeout": 120})
        monkeypatch.setenv("EVENKEEL_LEARNER_KEY", "guess")
        with pytest.raises(InputError, match="have another key"):
            build_learner(policy(), chosen)
        monkeypatch.setenv("EVENKEEL_LEARNER_KEY", "secret")
        with closing(build_learner(policy(), chosen)) as learner:
            assert near(steps(learner, [0, 1]), steps(alone(), [0, 1]))
        begun = time.monotonic()
        while child.alive and time.monotonic() - begun < 30:
            time.sleep(0.1)
        assert child.exit_code == 0


@pytest.mark.slow
def test_a_run_that_is_killed_before_its_first_command_leaves_no_rank_waiting(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    env = {"EVENKEEL_LEARNER_LISTEN": address, "EVENKEEL_LEARNER_KEY": "secret", "RANK": "0", "WORLD_SIZE": "1"}
    env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    command = [sys.executable, "-m", "components.learner.worker"]
    with Child("learner", command, log=tmp_path / "learner.log", env=env) as child:
        begun = time.monotonic()
        while "waits for the run" not in child.tail() and time.monotonic() - begun < 60:
            time.sleep(0.1)
        client(address, "secret", 10).close()
        while child.alive and time.monotonic() - begun < 90:
            time.sleep(0.1)
        assert child.exit_code == 0
