"""`tests/simulated`, in a process of its own: PyTorch's autograd takes no further kind of device once it has gone
backward on a CPU."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.code_graph import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["not slow", "slow"])
def test_every_stage_computes_where_the_setting_says(tier):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/simulated", "-m", tier]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert ended.returncode == 0, ended.stdout[-6000:]
    assert " passed" in ended.stdout
