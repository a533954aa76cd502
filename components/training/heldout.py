"""Dev-split accuracy during training, for the health rules. The test split is never touched here."""

from __future__ import annotations

from collections.abc import Sequence

from components.evaluation.statistics import pass_at_k
from components.rollout import Collector
from components.seeds import derive
from components.types import Prompt


class HeldOut:
    """Samples the same dev prompts each time, at the training temperature."""

    def __init__(self, collector: Collector, prompts: Sequence[Prompt], samples: int) -> None:
        self._collector, self._prompts, self._samples = collector, tuple(prompts), samples

    def measure(self, seed: int) -> dict[str, float]:
        """``dev_pass_at_1`` and ``dev_pass_at_k`` (k = samples) of the engine's current weights."""
        sampling = self._collector.sampling(derive(seed, "dev"), n=self._samples)
        counts = [
            (len(group.accuracies), sum(a == 1.0 for a in group.accuracies))
            for group in self._collector.groups(self._prompts, sampling)
            if group.accuracies
        ]
        if not counts:
            return {}
        return {
            "dev_pass_at_1": sum(right / n for n, right in counts) / len(counts),
            "dev_pass_at_k": sum(pass_at_k(n, right, min(self._samples, n)) for n, right in counts) / len(counts),
        }
