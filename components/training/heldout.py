"""Samples of the dev split during training, for the health rules. The test split is never touched here."""

from __future__ import annotations

from collections.abc import Sequence

from components.rollout import Collector
from components.seeds import derive
from components.types import Group, Prompt


class HeldOut:
    """Samples the same dev prompts each time, at the training temperature."""

    def __init__(self, collector: Collector, prompts: Sequence[Prompt], samples: int) -> None:
        self._collector, self._prompts, self.samples = collector, tuple(prompts), samples

    def sample(self, seed: int) -> list[Group]:
        """One scored group of ``samples`` completions a prompt, from the engine's current weights."""
        sampling = self._collector.sampling(derive(seed, "dev"), n=self.samples)
        return self._collector.reviewed(self._collector.groups(self._prompts, sampling))
