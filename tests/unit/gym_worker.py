"""A worker in which reasoning-gym has one more data set, whose scorer does what the answer says."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import reasoning_gym
from reasoning_gym.dataset import ProceduralDataset

from components.rewards.worker import _from_settings, serve


@dataclass
class FakeConfig:
    seed: int = 0
    size: int = 1


class FakeDataset(ProceduralDataset):
    def __init__(self, config: FakeConfig) -> None:
        super().__init__(config, config.seed, config.size)

    def __getitem__(self, idx: int) -> dict[str, Any]:
        raise NotImplementedError

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        assert answer is not None
        if answer == "raise":
            raise KeyError("no such move")
        while answer == "hang":
            time.sleep(0.01)
        while answer == "burn":
            pass
        return float(answer)


if __name__ == "__main__":
    reasoning_gym.register_dataset("fake", FakeDataset, FakeConfig)
    serve(_from_settings)
