"""Samples of the dev split during training, for the health rules. The test split is never touched here."""

from __future__ import annotations

from collections.abc import Sequence

from components.health.falls import Counts, counts, fallen
from components.health.sequential import Count
from components.rollout import Collector
from components.seeds import derive
from components.training.run import RunState
from components.types import Group, Prompt


class HeldOut:
    """Samples the same dev prompts each time, at the training temperature."""

    def __init__(self, collector: Collector, prompts: Sequence[Prompt], samples: int) -> None:
        self._collector, self._prompts, self.samples = collector, tuple(prompts), samples

    def sample(self, seed: int) -> list[Group]:
        """One scored group of ``samples`` completions a prompt, from the engine's current weights."""
        sampling = self._collector.sampling(derive(seed, "dev"), n=self.samples)
        return self._collector.reviewed(self._collector.groups(self._prompts, sampling))


def followed(state: RunState, dev: Sequence[Group]) -> tuple[dict[str, float], Counts]:
    """Signals of held-out accuracies and forms over time, and the counts of the accuracies, by stream; nothing where
    none was measured.

    The first measurement after a return is of the very weights that were saved: where it is worse than when they were
    saved, something else has changed than the policy.
    """
    forms, found = state.evidence.forms.observe(state.step, dev), counts(dev)
    signals = {f"form_{name}": nats for name, nats in forms.items()}
    if not found:
        return signals, {}
    falls = state.evidence.falls.observe(state.step, found)
    worst = max(falls, key=lambda name: falls[name])
    signals |= {"fall_evidence": falls[worst], "fall_evidence_since": float(state.evidence.falls.since(worst))}
    back, state.returned = state.returned, None
    if back is not None and back.counts is not None:
        before = {name: Count(*count) for name, count in back.counts.items()}
        if again := fallen(before, found):
            signals["same_weights_fall"] = max(again.values())
    return signals, found
