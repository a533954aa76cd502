"""What a container of a run does besides its work: it checks where it is, passes signals on, and ends with a word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from components.code_digest import code_digest
from components.errors import EXIT_BAD_INPUT, EXIT_LOST, EXIT_STOPPED, InputError
from components.pods.ending import ROOM, leave, termination_message
from components.pods.learner import Node, check_submission, ended, node_number
from components.processes.living import lives
from components.processes.torchrun import node_exit_code
from components.status import StageStatus
from tests.code_graph import ROOT

# Code and packages


def test_the_submitters_code_and_an_image_of_its_packages_are_accepted():
    check_submission({"EVENKEEL_CODE": code_digest(), "EVENKEEL_CONSTRAINTS": "a", "EVENKEEL_IMAGE_CONSTRAINTS": "a"})
    check_submission({"EVENKEEL_CONSTRAINTS": "a"})  # an image that does not say
    check_submission({})


@pytest.mark.parametrize(
    ("environment", "what", "how"),
    [
        ({"EVENKEEL_CODE": "f" * 64}, "other code than that of the run: ffffffffffff in the run", "submit the run"),
        (
            {"EVENKEEL_CONSTRAINTS": "a" * 64, "EVENKEEL_IMAGE_CONSTRAINTS": "b" * 64},
            "constraints.txt is aaaaaaaaaaaa in the run, and was bbbbbbbbbbbb",
            "rebuild the image",
        ),
    ],
)
def test_other_code_or_other_packages_are_refused(environment, what, how):
    with pytest.raises(InputError, match=what) as caught:
        check_submission(environment)
    assert how in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(("value", "what"), [(None, "is not set"), ("one", "'one', which is no number")])
def test_a_node_without_a_number_says_so(value, what):
    environment = {} if value is None else {"JOB_COMPLETION_INDEX": value}
    with pytest.raises(InputError, match=what):
        node_number(environment, nodes=2)
    assert node_number({}, nodes=1) == 0


# The last words


def test_the_last_words_are_the_message():
    assert termination_message(StageStatus(2, "no such file\n  fix:   make it")) == b"no such file\n  fix:   make it"


@pytest.mark.parametrize("character", ["x", "\n", "é", "\N{GRINNING FACE}"])
def test_of_a_long_message_the_end_stays(character):
    data = termination_message(StageStatus(1, character * 9000 + "the end"))
    message = data.decode()
    assert len(data) <= ROOM
    assert len(data) > ROOM / 2
    assert message.startswith("... ") and message.endswith("the end")


def test_only_who_has_lost_another_lingers(tmp_path, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("components.pods.ending.time.sleep", slept.append)
    monkeypatch.setenv("EVENKEEL_LINGER", "7")
    monkeypatch.setenv("EVENKEEL_TERMINATION_LOG", str(tmp_path / "log"))
    assert [leave(StageStatus(code, "why")) for code in (0, 1, 2, 3, 75, 143)] == [0, 1, 2, 3, 75, 143]
    assert slept == [7.0]
    assert (tmp_path / "log").read_text() == "why"


def test_last_words_that_cannot_be_written_change_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EVENKEEL_TERMINATION_LOG", str(tmp_path / "missing" / "log"))
    assert leave(StageStatus(3, "no")) == 3
    assert "no termination message" in capsys.readouterr().err


# The first process

FIRST = "import sys; from components.pods.child import FirstProcess; sys.exit(FirstProcess().run(sys.argv[1:]))"


def first(script: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FIRST, "bash", "-c", script]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 75", 75), ("kill -9 $$", 137)])
def test_its_exit_code_is_that_of_the_command(script, code):
    assert first(script).wait(30) == code


def test_signals_reach_the_command_which_decides():
    process = first("trap 'sleep 0.3; echo checkpoint; exit 143' TERM; echo ready; while :; do sleep 0.05; done")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert (out, process.returncode) == ("checkpoint\n", 143)


def test_a_signal_that_came_before_the_command_is_not_forgotten():
    script = (
        "import os, signal, sys\n"
        "from components.pods.child import FirstProcess\n"
        "from components.processes.stopping import STOPPING\n"
        "with STOPPING.on_signal(), STOPPING.defer_signal():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    sys.exit(FirstProcess().run(['sleep', '60']))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", script], env=environment, timeout=30).returncode == 143


def test_orphans_are_buried_and_what_is_left_is_ended():
    process = first("(true & exec sleep 0.01); (setsid sleep 60 & echo $!); echo ready; sleep 1; exit 5")
    left = psutil.Process(int(process.stdout.readline()))
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    statuses = [one.status() for one in psutil.Process(process.pid).children(recursive=True)]
    assert psutil.STATUS_ZOMBIE not in statuses
    assert process.wait(30) == 5
    assert not lives(left)


# The learner


def learner(folder: Path, stage: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "components.pods.learner", stage, "--config", "settings.yaml"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "EVENKEEL_TERMINATION_LOG": str(folder / "log"), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_pod_ends_as_its_stage_and_says_why(tmp_path):
    (tmp_path / "settings.yaml").write_text("name: Not A Name")
    done = learner(tmp_path, "gate")
    said = (tmp_path / "log").read_text()
    assert done.returncode == 2
    assert "name" in said


def test_a_pod_refuses_other_code_before_it_does_anything(tmp_path):
    done = learner(tmp_path, "gate", EVENKEEL_CODE="0" * 64)
    assert done.returncode == 2
    assert "other code" in (tmp_path / "log").read_text()
    assert not (tmp_path / ".state").exists()


@pytest.mark.parametrize(
    ("code", "said", "message"),
    [
        (3, StageStatus(3, "refused"), "refused"),
        (137, None, "was ended by signal 9 and did not say why; its log may (out of memory?)"),
        (137, StageStatus(1, "a bug"), "was ended by signal 9"),
        (134, None, "was ended by signal 6 and did not say why; its log may"),
        (2, None, "ended with exit code 2 and did not say why; its log may"),
        (143, None, "stopped on request before stage train had begun"),
    ],
)
def test_a_stage_that_did_not_say_how_it_ended_is_spoken_for(code, said, message):
    status = ended("train", code, said)
    assert status.exit_code == code
    assert message in status.message


def test_a_stage_that_was_through_when_a_signal_came_is_done():
    assert ended("train", 143, StageStatus(0)) == StageStatus(0)


@pytest.mark.parametrize("code", [0, 1, 75, 137])
def test_what_the_stage_says_counts_and_not_how_torchrun_ended(code):
    assert ended("train", code, StageStatus(3, "no candidate"), ranked=True) == StageStatus(3, "no candidate")


def test_a_stage_that_torch_stopped_because_another_rank_failed_did_not_stop_on_request():
    stopped = StageStatus(143, "stopped; the same command continues")
    assert ended("train", 143, stopped, ranked=True) == stopped
    failed = ended("train", 1, stopped, ranked=True)
    assert (failed.exit_code, "a rank of this node failed" in failed.message) == (1, True)


def test_rank_0_that_was_killed_below_torchrun_did_not_say_why():
    assert ended("train", 137, None, ranked=True).exit_code == 137
    assert ended("train", 0, None, ranked=True).exit_code == 1


def test_a_stage_of_one_process_runs_without_torchrun_and_several_ranks_with_it():
    config, meeting = Path("settings.yaml"), "run-learner-0-0.run:29500"
    alone = [sys.executable, "-m", "components", "sft", "--config", "settings.yaml"]
    assert Node(0, 1, 1, "").command("sft", config) == alone
    ranks = [sys.executable, "-m", "components.processes.torchrun", "2", "8", meeting, "1"]
    assert Node(1, 2, 8, meeting).command("train", config) == [*ranks, *alone[2:3], "train", *alone[4:]]


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ([EXIT_BAD_INPUT, EXIT_LOST], 2),
        ([EXIT_LOST, EXIT_LOST], 75),
        ([-signal.SIGKILL, EXIT_LOST], 137),
        ([1], 1),
        ([1, -signal.SIGKILL, -signal.SIGTERM, EXIT_STOPPED], 1),  # torch has ended the others
        ([-signal.SIGKILL, -signal.SIGTERM], 137),
        ([-signal.SIGTERM, EXIT_LOST], 143),
        ([EXIT_STOPPED], 143),
    ],
)
def test_a_node_ends_with_the_exit_code_of_the_rank_that_is_to_blame(codes, code):
    assert node_exit_code(codes) == code
