"""The device of these tests, and the models that they run with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from components.config.policy import PolicySettings
from components.device import own_device
from components.policy import Policy, load_policy
from components.processes.environments import DEVICE
from tests.unit import factories

ROOT = Path(__file__).parents[2]
REAL = ROOT / "models" / "smollm2-135m-instruct"
ON = "EVENKEEL_TEST_GPU_ON"
"""``cpu`` runs these tests on a CPU, which says only that they run."""


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """The GPU."""
    wanted = os.environ.get(ON, "cuda")
    if wanted == "cuda" and not torch.cuda.is_available():
        pytest.skip(f"there is no GPU that torch {torch.__version__} reaches")
    monkeypatch.setenv(DEVICE, wanted)
    return own_device()


@pytest.fixture(params=["tiny", "real"])
def checkpoint(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of a tiny model with random weights, and of the real one."""
    if request.param == "tiny":
        factories.policy().save(tmp_path / "tiny")
        return tmp_path / "tiny"
    if not REAL.exists():
        pytest.skip(f"there is no {REAL.relative_to(ROOT)}: `make model` fetches it")
    return REAL


@pytest.fixture
def loaded(device: torch.device, checkpoint: Path) -> Policy:
    """A policy on the GPU."""
    return load_policy(checkpoint, PolicySettings())
