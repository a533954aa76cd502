"""What broken, lost and foreign ranks lead to, and what a run that is killed leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from components.errors import EXIT_BAD_INPUT, EXIT_LOST, InputError
from components.files import read_jsonl
from components.learner import Learner, build_learner
from components.learner.remote.link import client
from components.processes import Child, free_port
from components.resume import ResumeState
from components.training import assembly
from components.training.checkpoints import CheckpointWriter

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from factories import Judge, parity, policy, workspace
from training_runs import killed, outputs, train

from tests.integration.ranks import FSDP2, KINDS, alone, environment, family, how, near, running, steps
from tests.tiers import slow_but

pytestmark = pytest.mark.integration

# Broken ranks


@pytest.fixture
def broken(tmp_path) -> Iterator[Learner]:
    chosen = how(**FSDP2, ranks_={"reply_timeout": 3})
    learner = build_learner(policy(), chosen, tmp_path / "logs")
    steps(learner, [0])
    yield learner
    learner.close()


@pytest.mark.parametrize(("how_", "number"), slow_but([("SIGKILL", 1), ("SIGKILL", 0), ("SIGSTOP", 1)], ("SIGKILL", 1)))
def test_a_rank_that_is_lost_is_named_and_all_others_end(broken, how_, number):
    everyone = family()
    victim = [p for p in everyone if environment(p)["RANK"] == str(number)][-1]
    victim.send_signal(signal.Signals[how_])
    begun = time.monotonic()
    with pytest.raises(InputError) as caught:
        steps(broken, [1])
    assert time.monotonic() - begun < 30
    assert caught.value.exit_code == EXIT_LOST
    assert f"learner-{number}" in str(caught.value)
    assert how_ in str(caught.value)
    assert not running(everyone)
    with pytest.raises(InputError, match="ended"):
        broken.weights()


UNFINISHED = [(None, "learner.ranks.reply_timeout"), (1, "SIGKILL"), (0, "SIGKILL")]


@pytest.mark.slow
@pytest.mark.parametrize(("victim", "said"), UNFINISHED)
def test_a_checkpoint_that_rank_0_does_not_finish_is_explained(broken, victim, said, tmp_path):
    """Rank 0 writes into a pipe that nobody reads: a disk that is too slow."""

    def begin(folder: Path) -> Callable[[], None]:
        os.mkfifo(folder / "learner.json")
        return broken.snapshot(folder)

    everyone = family()
    writer = CheckpointWriter(ResumeState(tmp_path / "train", {}), asynchronous=True)
    writer.write(1, begin, keep={1})
    if victim is not None:
        [p for p in everyone if environment(p)["RANK"] == str(victim)][-1].kill()
    with pytest.raises(InputError, match="the checkpoint of step 1 was not written") as caught:
        writer.wait()
    assert caught.value.exit_code == EXIT_LOST
    text = str(caught.value)
    assert said in text
    assert text.count("started again") == 1
    assert "None" not in text
    if victim is not None:
        assert f"learner-{victim} was ended by" in text
        assert caught.value.where.endswith(f"learner-{victim}.log")
        assert not running(everyone)
    writer.close()


@pytest.mark.slow
def test_a_run_that_is_killed_takes_its_ranks_with_it(tmp_path):
    script = (
        f"import sys, time; sys.path[:0] = {[str(Path(__file__).parents[2])]}\n"
        "from tests.integration.ranks import *\n"
        "learner = build_learner(policy(), how(**FSDP2), Path('logs'))\n"
        "print('ready', flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as run:
        assert "ready\n" in iter(run.stdout.readline, "")
        everyone = family()
        run.kill()
    begun = time.monotonic()
    while running(everyone) and time.monotonic() - begun < 20:
        time.sleep(0.1)
    assert len(everyone) >= 4
    assert not running(everyone)


@pytest.mark.slow
def test_closing_leaves_no_process_and_no_socket(tmp_path):
    learner = build_learner(policy(), how(**FSDP2), tmp_path / "logs")
    everyone = family()
    assert len(everyone) >= 4  # two ranks, each under its guardian
    learner.close()
    learner.close()
    assert not running(everyone)
    logs = [(tmp_path / "logs" / f"learner-{rank}.log").read_text() for rank in (0, 1)]
    assert ["of 2, cpu, gloo: the run has hung up" in log for log in logs] == [True, True]


def test_an_error_of_a_rank_says_what_and_where(tmp_path):
    learner = build_learner(policy(), how(**FSDP2), tmp_path / "logs")
    (tmp_path / "other").mkdir()
    save_file({"weight/other": torch.zeros(1)}, tmp_path / "other" / "learner.safetensors")
    with pytest.raises(InputError, match="belongs to another model") as caught:
        learner.load(tmp_path / "other")
    assert caught.value.exit_code == EXIT_BAD_INPUT


# The loop


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["zero-2", "fsdp2"])
def test_a_run_that_is_killed_ends_with_the_bytes_of_one_that_is_not(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(assembly, "Scorer", lambda *_: Judge(parity))  # a random policy earns no other reward
    chosen = how(**KINDS[kind])
    whole = train(tmp_path / "whole", chosen)
    expected = outputs(whole)
    assert sum("grad_norm" in row["signals"] for row in read_jsonl(whole.records)) > 1
    workspace(tmp_path / "killed")
    with killed(monkeypatch, "checkpoint", 2, after=True):
        train(tmp_path / "killed", chosen)
    assert outputs(train(tmp_path / "killed", chosen)) == expected
    assert not running(family())


# Ranks that something else has started


@pytest.mark.slow
def test_ranks_that_something_else_has_started_serve_a_run_that_knows_the_key(tmp_path, monkeypatch):
    """As on a cluster: torchrun starts the ranks, the run finds them under an address."""
    address = f"127.0.0.1:{free_port()}"
    env = {"EVENKEEL_LEARNER_LISTEN": address, "EVENKEEL_LEARNER_KEY": "secret", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    with Child(
        "torchrun", [*command, "-m", "components.learner.worker"], log=tmp_path / "torchrun.log", env=env
    ) as child:
        chosen = how(**FSDP2, ranks_={"address": address, "start_timeout": 120})
        monkeypatch.setenv("EVENKEEL_LEARNER_KEY", "guess")
        with pytest.raises(InputError, match="have another key"):
            build_learner(policy(), chosen, tmp_path / "logs")
        monkeypatch.setenv("EVENKEEL_LEARNER_KEY", "secret")
        learner = build_learner(policy(), chosen, tmp_path / "logs")
        assert near(steps(learner, [0, 1]), steps(alone(), [0, 1]))
        learner.close()
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


def test_another_number_of_ranks_than_the_settings_say_is_refused_with_both(tmp_path, monkeypatch):
    address = f"127.0.0.1:{free_port()}"
    env = {"EVENKEEL_LEARNER_LISTEN": address, "EVENKEEL_LEARNER_KEY": "secret", "RANK": "0", "WORLD_SIZE": "1"}
    env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    monkeypatch.setenv("EVENKEEL_LEARNER_KEY", "secret")
    command = [sys.executable, "-m", "components.learner.worker"]
    why = "another number of ranks: 2 in the run, 1 in its ranks"
    with Child("learner", command, log=tmp_path / "learner.log", env=env), pytest.raises(InputError, match=why):
        build_learner(policy(), how(**FSDP2, ranks_={"address": address}), tmp_path / "logs")
