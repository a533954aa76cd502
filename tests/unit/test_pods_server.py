"""A server's end is never the end of its work."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from components.errors import EXIT_STOPPED

ROOT = Path(__file__).parents[2]


def container(script: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "components.pods.server", sys.executable, "-c", script]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.parametrize(("ends_with", "code"), [(0, 1), (1, 1), (7, 7)])
def test_one_that_ends_by_itself_has_failed(ends_with: int, code: int) -> None:
    running = container(f"raise SystemExit({ends_with})")
    _, said = running.communicate(timeout=60)
    assert running.returncode == code
    assert b"ended by itself" in said


def test_one_that_is_asked_to_end_may_end_in_order() -> None:
    running = container(
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); print('up', flush=True); time.sleep(60)"
    )
    assert running.stdout is not None and running.stdout.readline() == b"up\n"
    time.sleep(0.1)
    running.terminate()
    running.communicate(timeout=30)
    assert running.returncode == EXIT_STOPPED
