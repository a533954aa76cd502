"""A lack of memory that a library swallows is not a wrong answer."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import resource
from pathlib import Path
from components.rewards.symbolic import MathVerifier
from components.types import Prompt

verifier = MathVerifier(None, 6, "strip", 400)
verifier.prepare()
def judge(answer, text):
    try:
        return verifier.accuracy(Prompt(id="p", text="?", answer=answer, solution=""), text)
    except MemoryError:
        return "memory"
judge("3^{2000}", r"\\boxed{3^{1999}\\cdot 3}")
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + LEFT * 2**20, -1))
print(judge("5^{4000000}", r"\\boxed{5^{3999999}\\cdot 5}"), end=" ")
print(judge("x+1", r"\\boxed{x+2}"), judge("x+1", r"\\boxed{1+x}"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("left", "said"), [(2, "memory memory 1.0"), (300, "1.0 0.0 1.0")])
def test_a_no_of_math_verify_counts_only_where_there_was_memory(left, said):
    script = SCRIPT.replace("LEFT", str(left))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said
