"""The ranks of a learner as processes: who is one, which was lost, and what is said of it. See tests/integration."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import torch
from factories import policy, settings

from components.errors import EXIT_BAD_INPUT, EXIT_LOST, InputError, RankLost
from components.learner import members
from components.learner.follower import carry_out
from components.learner.group import is_lost, log_of, place_of
from components.learner.members import LOST, Member, lost
from components.learner.torch_learner import TorchLearner
from components.processes.environments import RANK_LOGS
from components.processes.living import lives
from components.processes.ranked import STARTED, without_rank

SEVERED = RuntimeError("[gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:26752")


@pytest.fixture
def process() -> Iterator[psutil.Process]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as started:
        yield psutil.Process(started.pid)
        started.kill()


def member(process: psutil.Process, log: str = "") -> Member:
    own = Member.this(1, "torch", log)
    return own._replace(pid=process.pid, began=process.create_time())


def end(process: psutil.Process) -> None:
    process.kill()
    while lives(process):
        time.sleep(0.01)


# Who is a rank


@pytest.mark.parametrize(
    ("environment", "processes", "place"),
    [
        ({}, 1, (0, 1)),
        ({"RANK": "1", "WORLD_SIZE": "4"}, 1, (0, 1)),  # of something else that exports them
        ({STARTED: "1", "RANK": "1", "WORLD_SIZE": "2"}, 2, (1, 2)),
        ({STARTED: "1", "RANK": "0", "WORLD_SIZE": "1"}, 1, (0, 1)),
    ],
)
def test_the_environment_says_which_rank_this_is(environment, processes, place):
    assert place_of(environment, processes) == place


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, "has 2 ranks, and this process was not started as one of them"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "was not started as one of them"),
        ({STARTED: "1", "RANK": "x", "WORLD_SIZE": "2"}, "was not started as one of them"),
        ({STARTED: "1", "RANK": "0", "WORLD_SIZE": "4"}, "2 in the settings, 4 were started"),
    ],
)
def test_a_process_that_is_none_of_the_ranks_is_refused(environment, why):
    with pytest.raises(InputError, match=why) as caught:
        place_of(environment, 2)
    assert "torchrun --nproc-per-node=2" in str(caught.value)


def test_rank_0_writes_where_the_stage_writes_and_others_have_a_log_of_their_own(tmp_path):
    environment = {RANK_LOGS: str(tmp_path)}
    assert [log_of(environment, rank) for rank in (0, 1)] == [None, tmp_path / "learner-1.log"]
    assert log_of({}, 1) is None


def test_a_server_that_a_rank_starts_does_not_take_itself_for_one():
    ranked = {STARTED: "1", "RANK": "0", "MASTER_PORT": "1", "TORCHELASTIC_USE_AGENT_STORE": "True", "GROUP_RANK": "0"}
    assert without_rank({**ranked, "HOME": "/root"}) == {"HOME": "/root"}
    assert without_rank({"RANK": "0", "HOME": "/root"}) == {"RANK": "0", "HOME": "/root"}


# Which rank was lost


@pytest.mark.parametrize(
    ("error", "gone"),
    [
        (SEVERED, True),
        (RuntimeError("Timed out waiting 3000ms for recv operation to complete"), True),
        (torch.distributed.DistError("store"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("closed by peer"), False),
    ],
)
def test_an_error_of_a_connection_is_distinguished_from_one_of_the_computation(error, gone):
    assert is_lost(error) == gone


def test_a_rank_that_was_killed_is_named_with_the_end_of_its_log(process, tmp_path):
    log = tmp_path / "learner-1.log"
    log.write_text("\n".join(f"line {number}" for number in range(30)))
    one = member(process, str(log))
    assert one.state() == "running"
    end(process)
    found = lost("step", [one], lambda _: "", [], SEVERED, 60)
    assert (type(found), found.exit_code, found.where) == (RankLost, EXIT_LOST, str(log))
    assert "learner-1 was lost during 'step' and did not say why" in found.what
    assert found.what.endswith("line 29")
    assert "line 14\n" not in found.what


def test_a_rank_that_failed_says_why_and_starting_again_does_not_help(process):
    end(process)
    found = lost("step", [member(process)], lambda _: "ValueError: no such row", [], SEVERED, 60)
    assert (type(found), found.exit_code) == (InputError, EXIT_BAD_INPUT)
    assert "learner-1 failed during 'step': ValueError: no such row" in found.what
    assert "rank 1 on" in str(found.where)


def test_of_a_rank_of_another_machine_only_its_own_account_is_known(process, monkeypatch):
    monkeypatch.setattr(members, "SETTLE", 0.1)
    one = member(process)._replace(host="elsewhere")
    assert isinstance(lost("step", [one], lambda _: "ValueError: no such row", [], SEVERED, 60), InputError)
    assert isinstance(lost("step", [one], lambda _: "", [one], SEVERED, 60), RankLost)


def test_a_rank_that_was_stopped_is_named_with_the_time_it_had(process):
    process.suspend()
    found = lost("step", [member(process)], lambda _: "", [], SEVERED, 60)
    assert isinstance(found, RankLost)
    assert "learner-1 has been stopped (SIGSTOP), and did not carry out 'step' within 60 s" in found.what


def test_a_rank_that_only_lost_another_is_not_the_culprit(process, monkeypatch):
    monkeypatch.setattr(members, "SETTLE", 0.1)
    end(process)
    found = lost("step", [member(process)], lambda _: LOST, [], SEVERED, 60)
    assert isinstance(found, RankLost)
    assert found.what.startswith("a rank of the learner did not carry out 'step': [gloo")


def test_a_rank_that_runs_and_does_not_answer_is_named(process, monkeypatch):
    monkeypatch.setattr(members, "SETTLE", 0.1)
    one = member(process)
    found = lost("step", [one], lambda _: "", [one], SEVERED, 60)
    assert isinstance(found, RankLost)
    assert found.what.startswith("learner-1 did not carry out 'step': [gloo")


def test_another_process_with_the_same_number_is_not_the_rank(process):
    assert member(process)._replace(began=1.0).state() == "ended"
    assert member(process)._replace(began=1.0, host="elsewhere").state() == "running"  # nothing is known of it


# What all ranks do together


def test_only_methods_of_the_learner_that_are_collective_can_be_commanded():
    chosen = settings()
    learner = TorchLearner(policy(), chosen.learner, chosen.objective, 1.0)
    with pytest.raises(ValueError, match="unknown command 'save_policy'; known are configure, logprobs"):
        carry_out(learner, "save_policy", (Path(),))
