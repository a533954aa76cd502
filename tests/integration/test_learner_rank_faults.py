"""What lost and foreign ranks lead to, and what a run that is killed leaves."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import torch

from components.config import load
from components.errors import EXIT_BAD_INPUT, EXIT_LOST, InputError, RankLost
from components.files import read_jsonl
from components.launch import Job
from components.launch.processes import ProcessLauncher, driver_log
from components.layout import Layout
from components.learner.base import Learner
from components.learner.build import build_learner
from components.processes.ranked import STARTED
from components.training import assembly

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from factories import Judge, parity, policy, workspace
from training_runs import killed, outputs, train

from tests.integration.ranks import (
    FSDP2,
    KINDS,
    content,
    environment,
    family,
    following,
    forget_groups,
    how,
    learning,
    running,
    saved,
    steps,
    written,
)
from tests.integration.runs import prepared, rows
from tests.tiers import slow_but

pytestmark = pytest.mark.integration


@pytest.fixture
def learner(request, tmp_path) -> Iterator[Learner]:
    """Two ranks after their first step, which loads libraries; the parameter is the limit of a reply in seconds."""
    with learning(how(**FSDP2, ranks_={"reply_timeout": getattr(request, "param", 60)}), tmp_path) as found:
        steps(found, [0])
        yield found


def rank(number: int) -> psutil.Process:
    """The process of a rank, without its guardian."""
    return [process for process in family() if environment(process)["RANK"] == str(number)][-1]


def loss(learner: Learner, how_: str, within: float) -> RankLost:
    """What the next step raises, within so many seconds, after rank 1 received a signal."""
    rank(1).send_signal(signal.Signals[how_])
    begun = time.monotonic()
    with pytest.raises(RankLost, match="learner-1") as caught:
        steps(learner, [1])
    assert time.monotonic() - begun < within
    assert caught.value.exit_code == EXIT_LOST
    assert caught.value.where.endswith("learner-1.log")
    return caught.value


def wait_until(there: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not there() and time.monotonic() < until:
        time.sleep(0.05)


def test_a_rank_that_is_killed_is_named_at_once(learner):
    assert "SIGSTOP" not in str(loss(learner, "SIGKILL", within=20))


@pytest.mark.slow
@pytest.mark.parametrize("learner", [15], indirect=True)
def test_a_rank_that_is_stopped_is_named_at_the_limit_of_a_reply(learner):
    assert "SIGSTOP" in str(loss(learner, "SIGSTOP", within=40))


@pytest.mark.slow
def test_a_rank_that_is_lost_while_a_checkpoint_is_written_is_named(learner, tmp_path):
    (tmp_path / "state").mkdir()
    written = learner.snapshot(tmp_path / "state")
    rank(1).kill()
    with pytest.raises(RankLost, match="learner-1 was lost during 'write a checkpoint'"):
        written()


@pytest.mark.slow
def test_a_copy_that_is_never_written_does_not_hold_up_the_next(learner, tmp_path):
    learner.snapshot(tmp_path / "never")
    steps(learner, [1])
    (tmp_path / "state").mkdir()
    written = learner.snapshot(tmp_path / "state")
    expected = steps(learner, [2])
    written()
    learner.load(tmp_path / "state")
    assert steps(learner, [2]) == expected


@pytest.mark.slow
def test_a_rank_that_is_slow_to_copy_writes_that_copy_and_none_from_before(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(__file__).parents[2]}")
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, time\nif '-m' in sys.orig_argv and 'components' in sys.orig_argv:\n"
        "    from components.learner.state import State\n    copy = State.snapshot\n"
        "    def snapshot(*given):\n        time.sleep(1)\n        return copy(*given)\n"
        "    State.snapshot = snapshot\n"
    )
    with learning(how(**FSDP2), tmp_path) as learner:
        for step in range(2):
            steps(learner, [step])
            folder = tmp_path / f"state-{step}"
            folder.mkdir()
            learner.snapshot(folder)()
            assert content(folder) == content(saved(learner, tmp_path / f"at-once-{step}"))


@pytest.mark.slow
def test_a_rank_that_fails_says_why_and_the_run_is_not_started_again_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(__file__).parents[2]}")
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nif '-m' in sys.orig_argv and 'components' in sys.orig_argv:\n"
        "    from components.learner.torch_learner import TorchLearner\n"
        "    def step(*_): raise ValueError('no such step')\n    TorchLearner.step = step\n"
    )
    with learning(how(**FSDP2), tmp_path) as learner, pytest.raises(InputError) as caught:
        steps(learner, [0])
    assert "learner-1 failed during 'step': ValueError: no such step" in str(caught.value)
    assert caught.value.exit_code == EXIT_BAD_INPUT


def test_ranks_go_on_after_a_foreign_state_and_a_request_to_stop_and_end_with_the_learner(tmp_path, monkeypatch):
    # Libraries of the ranks start threads when they are loaded; a signal may be delivered to any of them.
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    chosen, stops = how(**FSDP2), list[bool]()
    forget_groups()
    with following(chosen, tmp_path) as children:
        learner = build_learner(policy(), chosen)
        learner.on_stop_request(lambda: stops.append(True))
        with pytest.raises(ValueError, match="belongs to another model"):
            learner.load(written(tmp_path / "other", {"weight/other": torch.zeros(1)}))
        assert steps(learner, [0])
        rank(1).terminate()
        wait_until(lambda: bool(stops))
        assert steps(learner, [1])
        learner.close()
        learner.close()
        wait_until(lambda: not children[0].alive)
        assert (stops, children[0].exit_code) == ([True], 0)
    assert "rank 0 has ended the run" in (tmp_path / "learner-1.log").read_text()


def test_a_process_that_is_no_rank_is_refused_with_what_starts_ranks():
    with pytest.raises(InputError, match="has 2 ranks, and this process was not started as one") as caught:
        build_learner(policy(), how(**FSDP2))
    assert "launch.kind to processes" in str(caught.value)


def test_another_number_of_ranks_than_the_settings_say_is_refused_with_both(monkeypatch):
    monkeypatch.setenv(STARTED, "test")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(InputError, match="2 in the settings, 3 were started"):
        build_learner(policy(), how(**FSDP2))


# The loop


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "lora", "objective"),
    [
        ("zero-2", None, "token-mean"),
        ("fsdp2", None, "token-mean"),
        ("zero-2", {"rank": 4}, "token-mean"),
        ("fsdp2", {"rank": 4}, "token-mean"),
        ("fsdp2", {"rank": 4}, "ppo"),
    ],
)
def test_a_run_that_is_killed_ends_with_the_bytes_of_one_that_is_not(kind, lora, objective, tmp_path, monkeypatch):
    monkeypatch.setattr(assembly, "Scorer", lambda *_: Judge(parity))  # a random policy earns no other reward
    chosen = how(**KINDS[kind], lora=lora, objective=objective)

    def started(root: Path) -> Layout:
        forget_groups()
        with following(chosen, tmp_path):
            return train(root, chosen)

    whole = started(tmp_path / "whole")
    expected = outputs(whole)
    assert sum("grad_norm" in row["signals"] for row in read_jsonl(whole.records)) > 1
    workspace(tmp_path / "killed")
    with killed("checkpoint", 2):
        started(tmp_path / "killed")
    assert outputs(started(tmp_path / "killed")) == expected
    assert not running(family())


@pytest.fixture
def run(tmp_path, monkeypatch) -> Iterator[tuple[ProcessLauncher, str]]:
    """A training of two ranks that has made some steps."""
    learner = {"kind": "fsdp2", "ranks": {"processes": 2, "reply_timeout": 60}}
    prepared(tmp_path, train={"steps": 200}, learner=learner, launch={"kind": "processes"})
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'judge'}:{Path(__file__).parents[2]}")
    launcher, chosen = ProcessLauncher(), load(tmp_path / "settings.yaml")
    job = launcher.submit(Job("train", chosen, tmp_path))
    until = time.monotonic() + 120
    while rows(tmp_path) < 3:
        assert time.monotonic() < until, driver_log(Layout(tmp_path)).read_text()
        time.sleep(0.05)
    yield launcher, job
    launcher.cancel(job)


@pytest.mark.parametrize("number", slow_but([0, 1], 1))
@pytest.mark.slow
def test_a_run_whose_rank_is_killed_ends_as_lost_and_leaves_no_process(run, number):
    launcher, job = run
    everyone = family()
    rank(number).kill()
    status = launcher.wait(job, poll=0.1)
    assert (status.state, status.exit_code) == ("failed", EXIT_LOST)
    assert ("learner-1 was lost" if number else "rank 0 of the learner was lost") in status.message
    assert not running(everyone)


@pytest.mark.slow
def test_a_run_whose_guardian_is_killed_leaves_no_rank(run):
    launcher, job = run
    everyone = family()
    _, guardian = launcher._jobs[job]
    psutil.Process(guardian.pid).kill()
    wait_until(lambda: not running(everyone))
    assert len(everyone) == 2
    assert not running(everyone)
