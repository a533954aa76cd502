"""Scores by generation: greedy answers, judged by the run's verifier or as the probe defines."""

from __future__ import annotations

from components.canaries.items import Measured, Outcome, ProbeSet
from components.canaries.judging import judge_texts
from components.config.canaries import CanarySettings
from components.rollout import Collector
from components.types import Prompt


def measure_generation(
    probes: ProbeSet, settings: CanarySettings, collector: Collector, marker: str | None
) -> Measured:
    """One set by generation; ``marker`` is what the run's verifier reads an answer after, if it reads one."""
    sampling = collector.sampling(seed=0, n=1, temperature=0.0)
    if probes.probes[0].judged == "verifier":
        prompts = [
            Prompt(f"canary-{probe.id}", probe.texts[0], probe.answer, solution=probe.answer) for probe in probes.probes
        ]
        scores = (group.scores[0].accuracy for group in collector.groups(prompts, sampling))
        # Neither right nor wrong where the verifier could not judge.
        verified = (Outcome(accuracy, None if accuracy is None else accuracy == 1) for accuracy in scores)
        return Measured(probes, "generation", tuple(verified))
    texts = iter(collector.texts([text for probe in probes.probes for text in probe.texts], sampling))
    outcomes = (judge_texts(probe, [next(texts) for _ in probe.texts], marker, settings) for probe in probes.probes)
    return Measured(probes, "generation", tuple(outcomes))
