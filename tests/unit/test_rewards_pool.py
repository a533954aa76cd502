"""What a worker can write to its pool, and that none of it holds the pool up."""

from __future__ import annotations

import sys
import time

import pytest

from components.config.sandbox import SandboxSettings
from components.config.verifiers import ExactVerifier
from components.errors import EvenkeelError
from components.rewards.pool import Pool
from components.rewards.sandbox import Sandbox
from components.types import Prompt, Score

BEGIN = "import os, sys, time\nsys.stdin.readline()\n"
READY = "os.write(1, b'{}\\n')\nsys.stdin.readline()\n"
TRICKLE = "while True:\n    os.write(1, b'x' * 100)\n    time.sleep(0.002)\n"
FLOOD = "while True:\n    os.write(1, b'x' * 60000)\n"


def pool(code: str, timeout: float) -> Pool:
    return Pool([sys.executable, "-c", code], b"{}\n", 1, timeout)


@pytest.mark.parametrize(
    ("writes", "timeout", "reason", "seconds"),
    [
        (TRICKLE, 1, "timeout: no verdict within 1 s", 10),
        (FLOOD, 60, "crash: the verifier's process wrote what is no verdict", 30),
    ],
)
def test_a_line_that_never_ends_is_late_or_too_long_and_is_not_collected(writes, timeout, reason, seconds):
    began = time.monotonic()
    endless = pool(BEGIN + READY + writes, timeout)
    assert endless.ask([b"{}\n"]) == [{"unscorable": reason}]
    assert time.monotonic() - began < seconds
    endless.close()


def test_a_line_without_end_before_the_start_is_a_failure_to_start():
    with pytest.raises(EvenkeelError, match="did not start"):
        pool(BEGIN + FLOOD, timeout=60).ask([b"{}\n"])


def test_what_a_verifier_prints_while_it_loads_is_neither_its_start_nor_a_verdict(tmp_path):
    path = tmp_path / "worker.py"
    path.write_text(
        "from components.rewards.base import Verifier\nfrom components.rewards.worker import serve\n"
        "class Noisy(Verifier):\n"
        "    def prepare(self): print('loading weights ...', flush=True)\n"
        "    def accuracy(self, prompt, text): return 1.0\n"
        "def build(settings):\n    print('building', flush=True)\n    return Noisy()\nserve(build)\n"
    )
    prompt = Prompt(id="p", text="?", answer="a", solution="")
    with Sandbox(ExactVerifier(), SandboxSettings(workers=1), command=(sys.executable, str(path))) as sandbox:
        assert sandbox.judge([(prompt, "# a")] * 2) == [Score(1.0)] * 2
