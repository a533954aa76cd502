"""What continuous integration runs after `make test`: one of the other tiers, in turn by commit, as far as time allows.

    python -m tests.rotation 2700    # seconds

A test that fails is run once more, alone: if it passes then, it is named and is no failure. A tier that takes longer
than there is time for is cut off, which is no failure either; the slow one begins elsewhere the next time.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from tests.code_graph import ROOT

PYTEST = (sys.executable, "-m", "pytest")
TIERS = ("slow", "served", "vllm")
"""Those that need no cluster and no GPU."""
FILES = 6
"""Of the slow tier that one pytest gets: its start takes some seconds, and what is cut off is lost."""
CUT_OFF = 124


def main(seconds: float) -> int:
    """Run the tier whose turn it is; returns the exit code."""
    end = time.monotonic() + seconds
    number = int(_output("git", "rev-list", "--count", "HEAD"))
    tier = TIERS[number % len(TIERS)]
    print(f"tier {tier}: commit {number}, {seconds:.0f} s", flush=True)
    if tier == "slow":
        commands = list(slow(_slow_files(), turn=number // len(TIERS)))
    elif tier == "served":
        commands = [("make", "test-served"), ("make", "test-browser")]
    else:
        commands = [("make", "test-vllm")]
    for done, command in enumerate(commands):
        code = run(command, end)
        if code == CUT_OFF:
            print(f"cut off: {len(commands) - done} of {len(commands)} parts were not finished", flush=True)
            return 0
        if code:
            return code
    return 0


def slow(files: Sequence[str], turn: int) -> Iterator[tuple[str, ...]]:
    """Commands for all files with slow tests; each third of them comes first in its turn."""
    first = len(files) * (turn % 3) // 3
    turned = [*files[first:], *files[:first]]
    for start in range(0, len(turned), FILES):
        yield (*PYTEST, "-m", "slow", "-n", "2", "--dist", "loadfile", *turned[start : start + FILES])


def run(command: Sequence[str], end: float) -> int:
    """Run a command, and what failed in it once more; `CUT_OFF` where there is no time left."""
    code = _run(command, end)
    if code in (0, CUT_OFF):
        return code
    # "none": where no test failed, such as when there is no environment, none is repeated, and that is a failure
    again = _run((*PYTEST, "--last-failed", "--last-failed-no-failures", "none"), end)
    if not again:
        print(f"flaky: {' '.join(command)} failed, and its failed tests passed when they were repeated", flush=True)
    return again


def _run(command: Sequence[str], end: float) -> int:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
    try:
        return process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return CUT_OFF


def _slow_files() -> list[str]:
    listed = _output(*PYTEST, "-m", "slow", "--collect-only", "-q").splitlines()
    return list(dict.fromkeys(line.partition("::")[0] for line in listed if "::" in line))


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
