"""Moments in host memory: where they are, and that nothing that is computed, saved or loaded depends on it. The GPU is
simulated; no test shows that memory is given back to a real one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from components.config.base import AdamWSettings
from components.learner.optimizer import ClippedAdamW
from components.learner.state.contents import MOMENTS
from tests.simulated.gpu import simulated_gpu


@pytest.fixture
def gpu() -> Iterator[torch.device]:
    with simulated_gpu() as device:
        yield device


class Trained:
    """A layer and its optimizer. Gradients are set by hand: nothing here is about a backward pass."""

    def __init__(self, device: torch.device | str) -> None:
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 2).to(device)
        self.optimizer = ClippedAdamW(dict(self.layer.named_parameters()), AdamWSettings(lr=0.1, weight_decay=0.1))

    def update(self, gradient: float, limit: float = math.inf) -> None:
        for parameter in self.layer.parameters():
            parameter.grad = torch.full(parameter.shape, gradient).to(parameter.device)
        self.optimizer.step(0.1, limit)

    @property
    def moments(self) -> list[torch.Tensor]:
        states: Any = self.optimizer._adamw.state
        return [state[name] for state in states.values() for name in MOMENTS]

    @property
    def places(self) -> set[str]:
        return {moment.device.type for moment in self.moments}

    @property
    def weights(self) -> list[list[float]]:
        return [parameter.detach().cpu().flatten().tolist() for parameter in self.layer.parameters()]


def test_moments_are_on_the_host_until_the_next_step_and_gradients_are_gone(gpu):
    tested = Trained(gpu)
    tested.update(0.5)
    assert tested.places == {gpu.type}
    tested.optimizer.rest()
    assert tested.places == {"cpu"}
    assert all(parameter.grad is None for parameter in tested.layer.parameters())
    tested.update(0.3)
    assert tested.places == {gpu.type}


def test_updates_are_the_same_to_the_bit(gpu):
    rested, kept = Trained(gpu), Trained(gpu)
    for gradient in (0.5, -0.2, 0.3):
        rested.optimizer.rest()
        for one in (rested, kept):
            one.update(gradient)
        rested.optimizer.rest()
    assert rested.weights == kept.weights


def test_a_state_is_saved_from_the_host_and_goes_on_where_it_is_loaded(gpu, tmp_path: Path):
    kept, resumed = Trained(gpu), Trained(gpu)
    kept.update(0.5)
    kept.optimizer.rest()
    kept.optimizer.state.save(tmp_path / "state")
    resumed.optimizer.load(tmp_path / "state")
    for one in (kept, resumed):
        one.update(0.3)
    assert resumed.weights == kept.weights != Trained(gpu).weights


def test_a_snapshot_of_moments_on_the_host_is_that_of_moments_on_the_gpu(gpu, tmp_path: Path):
    tested = Trained(gpu)
    tested.update(0.5)
    tested.optimizer.state.snapshot(tmp_path / "gpu")()
    tested.optimizer.rest()
    tested.optimizer.state.snapshot(tmp_path / "host")()
    first, second = (sorted((tmp_path / place).glob("*.safetensors")) for place in ("gpu", "host"))
    assert first and [file.read_bytes() for file in first] == [file.read_bytes() for file in second]


def test_an_update_that_is_skipped_leaves_them_on_the_host(gpu):
    tested = Trained(gpu)
    tested.update(0.5)
    tested.optimizer.rest()
    tested.update(0.5, limit=0.0)
    assert tested.places == {"cpu"}


def test_before_the_first_step_there_is_nothing_to_move(gpu):
    tested = Trained(gpu)
    tested.optimizer.rest()
    tested.update(0.5)
    assert tested.places == {gpu.type}


def test_on_a_cpu_everything_stays():
    tested = Trained("cpu")
    tested.update(0.5)
    before = [moment.data_ptr() for moment in tested.moments]
    tested.optimizer.rest()
    assert [moment.data_ptr() for moment in tested.moments] == before
    assert all(parameter.grad is not None for parameter in tested.layer.parameters())
