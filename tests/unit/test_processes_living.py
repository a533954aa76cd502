"""Whether a process lives."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from components.learner.members import Member
from components.processes.living import abandoned, alive, born, claim, lives


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


@pytest.fixture
def zombie() -> Iterator[int]:
    """A process that has ended and that its parent, this one, has not reaped yet."""
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    yield pid
    os.waitpid(pid, 0)


def test_what_sleeps_or_is_stopped_lives(sleeper: subprocess.Popen[bytes]) -> None:
    assert lives(sleeper.pid) and lives(psutil.Process(sleeper.pid))
    sleeper.send_signal(signal.SIGSTOP)
    while psutil.Process(sleeper.pid).status() != psutil.STATUS_STOPPED:
        time.sleep(0.01)
    assert lives(sleeper.pid)


def test_what_is_not_reaped_yet_does_not_live_though_its_number_is_taken(zombie: int) -> None:
    os.kill(zombie, 0)
    assert psutil.pid_exists(zombie)
    began = psutil.Process(zombie).create_time()
    assert not lives(zombie) and not lives(psutil.Process(zombie))
    assert not alive(zombie, began)
    assert Member.this(1, "torch", "")._replace(pid=zombie, began=began).state() == "ended"


def test_a_clock_that_is_set_makes_no_living_process_a_dead_one(
    sleeper: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """psutil reckons when a process began from the present time and the time since the machine was started."""
    by_the_clock = psutil.Process(sleeper.pid).create_time()
    created, member = born(sleeper.pid), Member.this(1, "torch", "")
    claim(tmp_path)
    assert alive(sleeper.pid, created) and alive(sleeper.pid, by_the_clock)
    boot = psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: boot + 3600)
    assert psutil.Process(sleeper.pid).create_time() == pytest.approx(by_the_clock + 3600, abs=10)
    assert alive(sleeper.pid, created)
    assert member.state() == "running"
    assert not abandoned(tmp_path)


def test_a_process_of_another_start_of_the_machine_is_another(
    sleeper: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = born(sleeper.pid)
    (tmp_path / "boot_id").write_text("5f0e2d1c-0000-4000-8000-000000000000\n", encoding="ascii")
    monkeypatch.setattr("components.processes.living.BOOT", tmp_path / "boot_id")
    assert not alive(sleeper.pid, created)


@pytest.mark.parametrize("number", [-1, 0, 2**22 + 1, 2**80])
def test_numbers_that_no_process_has_do_not_live(number: int) -> None:
    assert not lives(number)


def test_a_process_whose_number_is_another_ones_by_now_does_not_live(sleeper: subprocess.Popen[bytes]) -> None:
    known = psutil.Process(sleeper.pid)
    known._ident = (known.pid, known.create_time() - 100)
    known._create_time = known.create_time() - 100
    assert not lives(known)
    assert lives(sleeper.pid)
