"""Nothing of a cell goes on after its time, or after Ctrl-C: neither its pools nor servers in sessions of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from components.processes.living import lives
from tests.benchmarks.ending import run_to_end
from tests.code_graph import ROOT
from tests.tiers import slow_but

CELL = """\
import os, signal, subprocess, sys, time
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
pool = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
server = subprocess.Popen(pool.args, start_new_session=True)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(f"{os.getpid()} {pool.pid} {server.pid}")
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(600)
"""
RUNNER = """\
import os, sys
from pathlib import Path
from tests.benchmarks.ending import interrupted_by_signals, run_to_end
interrupted_by_signals()
folder = Path(sys.argv[1])
run_to_end([sys.executable, "-S", "-c", sys.argv[2], str(folder / "pids"), "hears"], folder, os.environ, folder / "log",
           limit=600)
"""


def heard() -> None:
    """Whoever runs these tests in the background may ignore what a terminal sends."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def started(pids: Path) -> list[psutil.Process]:
    for _ in range(600):
        if pids.exists():
            return [psutil.Process(int(pid)) for pid in pids.read_text().split()]
        time.sleep(0.1)
    raise AssertionError("it never started")


def left(processes: list[int]) -> list[int]:
    """Those that still do something."""
    return [pid for pid in processes if lives(pid)]


@pytest.mark.parametrize("how", slow_but(["hears", "deaf"], "deaf"))
@pytest.mark.slow
def test_a_cell_whose_time_is_over_is_ended_with_all_that_it_started(tmp_path, how):
    command = [sys.executable, "-S", "-c", CELL, str(tmp_path / "pids"), how]
    said = run_to_end(command, tmp_path, os.environ, tmp_path / "log", limit=5, grace=1 if how == "deaf" else 30)
    assert said == "no end within 5 s", (tmp_path / "log").read_text()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 3 and not left(pids)


@pytest.mark.parametrize("number", slow_but([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], signal.SIGTERM))
def test_an_interrupted_call_ends_its_cell_with_all_that_it_started(tmp_path, number):
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(tmp_path), CELL],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        preexec_fn=heard,
    )
    pids = [process.pid for process in started(tmp_path / "pids")]
    runner.send_signal(number)
    said = runner.communicate(timeout=120)[1].decode()
    assert "KeyboardInterrupt" in said
    assert len(pids) == 3 and not left(pids)


def test_the_exit_code_and_what_was_printed_are_kept(tmp_path):
    command = [sys.executable, "-S", "-c", "print('words'); raise SystemExit(7)"]
    assert run_to_end(command, tmp_path, os.environ, tmp_path / "log", limit=60) == 7
    assert (tmp_path / "log").read_text() == "words\n"
