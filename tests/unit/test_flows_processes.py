"""Children never outlive their run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from components.processes.living import born
from flows.host import processes
from flows.host.processes import OWNER_VARIABLE, run, take_over

FAMILY = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
CHILD = "import os, pathlib, time; pathlib.Path('child').write_text(str(os.getpid())); time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + CHILD


def start(code: str, folder: Path) -> int:
    environment = {"PATH": os.environ["PATH"]}
    return run([sys.executable, "-c", code], cwd=folder, env=environment, log=folder / "logs/out.log")


def wait_for(path: Path) -> int:
    deadline = time.monotonic() + 20
    while not path.exists() or not path.read_text(encoding="utf-8"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(path.read_text(encoding="utf-8"))


def gone(pid: int) -> bool:
    """Whether a process ends within moments: the kernel needs some of its own after SIGKILL."""
    try:
        psutil.Process(pid).wait(5)
    except psutil.TimeoutExpired:
        return False
    except psutil.NoSuchProcess:
        return True
    return True


def test_the_exit_code_is_returned_and_the_output_appended(tmp_path: Path) -> None:
    assert start("print('one')", tmp_path) == 0
    assert start("import sys; sys.exit('two')", tmp_path) == 1
    assert (tmp_path / "logs/out.log").read_text(encoding="utf-8") == "one\ntwo\n"


def test_a_process_killed_by_a_signal_is_reported_as_such(tmp_path: Path) -> None:
    assert start("import os; os.kill(os.getpid(), 9)", tmp_path) == 128 + signal.SIGKILL


@pytest.mark.parametrize("child", [CHILD, STUBBORN])
def test_an_interruption_ends_the_whole_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: str) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.5)
    interrupted(tmp_path, FAMILY.format(child=child))
    assert gone(wait_for(tmp_path / "child"))


ELSEWHERE = (
    "import subprocess, sys, time; "
    "subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True, env={env}); {then}"
)
"""A child that leaves its parent's session, as inference servers do."""


@pytest.mark.parametrize(
    ("env", "then"),
    [("None", "time.sleep(60)"), ("None", "sys.exit()"), ("{}", "time.sleep(60)")],
    ids=["of its own session", "whose parent is gone", "with an environment of its own"],
)
def test_an_interruption_finds_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: str, then: str) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.5)
    inner = ELSEWHERE.format(child=STUBBORN, env=env, then=then)
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {inner!r}]); time.sleep(60)"
    interrupted(tmp_path, code)
    assert gone(wait_for(tmp_path / "child"))


def interrupted(folder: Path, code: str, again: float | None = None) -> None:
    """Run the code and interrupt this process as soon as its child is there, and once more after some seconds."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it

    def interrupt() -> None:
        wait_for(folder / "child")
        os.kill(os.getpid(), 2)
        if again is not None:
            time.sleep(again)
            os.kill(os.getpid(), 2)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            start(code, folder)
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)


def test_a_second_interruption_ends_the_politeness_and_not_the_ending(tmp_path: Path) -> None:
    began = time.monotonic()
    interrupted(tmp_path, FAMILY.format(child=STUBBORN), again=0.3)
    assert time.monotonic() - began < processes.GRACE / 2
    assert gone(wait_for(tmp_path / "child"))


def orphan(folder: Path, owner: str) -> subprocess.Popen[bytes]:
    child = subprocess.Popen([sys.executable, "-c", CHILD], cwd=folder, env={OWNER_VARIABLE: owner})
    wait_for(folder / "child")
    return child


@pytest.fixture
def _owner_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWNER_VARIABLE, "")


@pytest.mark.usefixtures("_owner_restored")
def test_what_a_killed_run_left_is_ended_and_nothing_else(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.mkdir()
    other.mkdir()
    me = psutil.Process()
    dead_owner = f"{me.pid}:{me.create_time() - 1000:.0f}"
    left = orphan(mine, f"{dead_owner}:{mine}")
    elsewhere = orphan(other, f"{dead_owner}:{other}")
    (mine / "child").unlink()
    owned = orphan(mine, f"{me.pid}:{me.create_time():.0f}:{mine}")
    (mine / "child").unlink()
    strange = orphan(mine, f"somebody:else:{mine}")
    try:
        assert take_over(mine) == [left.pid]
        assert gone(left.pid)
        assert elsewhere.poll() is None
        assert owned.poll() is None
        assert strange.poll() is None
    finally:
        for child in (left, elsewhere, owned, strange):
            child.kill()
            child.wait()


@pytest.mark.usefixtures("_owner_restored")
def test_children_carry_their_owner(tmp_path: Path) -> None:
    take_over(tmp_path)
    pid, started, project = os.environ[OWNER_VARIABLE].split(":")
    assert (int(pid), project) == (os.getpid(), str(tmp_path))
    assert float(started) == pytest.approx(born(), abs=1)
