"""A child never outlives its run, and says how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from components.errors import InputError
from components.processes import Child, free_port
from components.processes import child as child_module
from components.processes.living import lives
from tests.code_graph import ROOT

STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


def wait_for(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def said(child, text):
    return lambda: text in child.tail()


def shell(tmp_path: Path, script: str, **more) -> Child:
    return Child("one", ["bash", "-c", script], log=tmp_path / "one.log", **more)


def test_output_of_both_kinds_is_appended_to_the_log_and_the_exit_code_is_the_commands(tmp_path):
    for _ in range(2):
        with shell(tmp_path, "echo out; echo err >&2; exit 7") as child:
            wait_for(lambda child=child: not child.alive)
    assert child.exit_code == 7
    assert child.tail().split() == ["out", "err", "out", "err"]
    assert "one ended with exit code 7" in child.ending()


def test_a_command_that_was_killed_is_said_to_have_been(tmp_path):
    child = shell(tmp_path, "kill -9 $$")
    wait_for(lambda: not child.alive)
    assert child.exit_code == 137
    assert "was ended by SIGKILL" in child.ending()


def test_the_environment_is_this_ones_with_what_was_given(tmp_path, monkeypatch):
    monkeypatch.setenv("OURS", "kept")
    child = shell(tmp_path, "echo $OURS $GIVEN", env={"GIVEN": "added"})
    wait_for(lambda: not child.alive)
    assert child.tail().strip() == "kept added"


def test_a_command_that_does_not_exist_says_so(tmp_path):
    child = Child("one", ["no-such-command"], log=tmp_path / "one.log")
    wait_for(lambda: not child.alive)
    assert child.exit_code == 127
    assert "cannot start no-such-command" in child.ending()


def test_a_log_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        Child("one", ["true"], log=tmp_path / "file" / "one.log")


def test_stopping_ends_what_ignores_it_and_what_the_command_started_in_sessions_of_its_own(tmp_path):
    child = shell(tmp_path, f'setsid bash -c "{STUBBORN}" & {STUBBORN}', grace=0.5)
    wait_for(lambda: child.tail().count("ready") == 2)
    started = psutil.Process(child.pid).children(recursive=True)
    assert len(started) >= 2
    child.stop()
    assert not any(map(lives, started))
    child.stop()  # once more is no harm


def test_one_that_is_stopped_by_a_signal_can_be_ended(tmp_path):
    child = shell(tmp_path, "echo ready; sleep 60", grace=2)
    wait_for(said(child, "ready"))
    for process in psutil.Process(child.pid).children(recursive=True):
        process.suspend()
    began = time.monotonic()
    child.stop()
    assert time.monotonic() - began < 8
    assert not child.alive


def test_a_command_ends_before_what_it_has_started(tmp_path):
    """A run needs its ranks to write its last checkpoint."""
    below = "trap 'echo too early; exit' TERM; echo ready; while :; do sleep 0.05; done"
    command = f"""setsid bash -c "{below}" & needed=$!
        trap 'sleep 0.5; kill -0 $needed && echo in order; kill -9 $needed; exit 143' TERM
        echo ready; while :; do sleep 0.05; done"""
    child = shell(tmp_path, command, grace=5)
    wait_for(lambda: child.tail().count("ready") == 2)
    child.stop()
    assert "in order" in child.tail()
    assert "too early" not in child.tail()
    assert child.exit_code == 143


def test_a_group_is_asked_to_end_at_once_and_what_left_it_is_not(tmp_path):
    member = "trap 'echo group; exit' TERM; echo ready; while :; do sleep 0.05; done"
    apart = "trap 'echo apart; exit' TERM; echo ready; while :; do sleep 0.05; done"
    command = f"""bash -c "{member}" & setsid bash -c "{apart}" & echo ready; sleep 60"""
    child = shell(tmp_path, command, grace=1, group=True)
    wait_for(lambda: child.tail().count("ready") == 3)
    started = below(child)
    child.stop()
    assert "group" in child.tail() and "apart" not in child.tail()
    assert not any(map(lives, started))


def test_what_a_command_leaves_behind_is_ended_with_it(tmp_path):
    child = shell(tmp_path, "setsid sleep 60 & echo $!; exit 0", grace=0.5)
    wait_for(lambda: not child.alive)
    assert not lives(int(child.tail()))


def test_stopping_takes_no_longer_where_a_fork_of_the_run_holds_the_pipe_open(tmp_path):
    child = shell(tmp_path, "sleep 60 & echo ready; wait", grace=2)
    wait_for(said(child, "ready"))
    started = below(child)
    held = os.dup(child._guardian.stdin.fileno())
    try:
        began = time.monotonic()
        child.stop()
        assert time.monotonic() - began < 3
    finally:
        os.close(held)
    assert not any(map(lives, started))


def test_what_a_guardian_that_was_killed_leaves_in_its_group_is_ended_when_that_is_seen(tmp_path):
    child = shell(tmp_path, "sleep 60 & echo ready; wait", grace=2)
    wait_for(said(child, "ready"))
    started = below(child)
    assert len(started) == 2
    os.kill(child.pid, signal.SIGKILL)
    wait_for(lambda: not child.alive)
    wait_for(lambda: not any(map(lives, started)))
    assert child.exit_code == 137


def test_a_guardian_that_does_not_react_is_killed_with_all_that_is_below_it(tmp_path, monkeypatch):
    monkeypatch.setattr(child_module, "GRACE", 0.5)
    child = shell(tmp_path, "setsid sleep 60 & sleep 60 & echo ready; wait", grace=0.5)
    wait_for(said(child, "ready"))
    started = below(child)
    assert len(started) == 3
    os.kill(child.pid, signal.SIGSTOP)
    child.stop()
    assert not child.alive
    wait_for(lambda: not any(map(lives, started)))


def below(child: Child) -> list[psutil.Process]:
    return psutil.Process(child.pid).children(recursive=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_a_run_that_is_killed(tmp_path, number):
    code = (
        "import sys, time; from pathlib import Path; from components.processes import Child\n"
        f"Child('one', ['bash', '-c', {STUBBORN!r}], log=Path(sys.argv[1]), grace=0.5); time.sleep(60)"
    )
    log = tmp_path / "one.log"
    run = subprocess.Popen([sys.executable, "-c", code, str(log)], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})
    wait_for(lambda: log.exists() and "ready" in log.read_text())
    below = psutil.Process(run.pid).children(recursive=True)
    assert len(below) >= 2
    run.send_signal(number)
    run.wait()
    wait_for(lambda: not any(map(lives, below)))


def test_a_free_port_can_be_listened_on():
    import socket

    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))
        server.listen()
