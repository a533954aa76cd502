"""Scores by generation: greedy answers, judged by the run's verifier or as the probe defines."""

from __future__ import annotations

from components.canaries.items import Measured, Outcome, Probe, ProbeSet
from components.canaries.judging import judge_texts
from components.config.canaries import CanarySettings
from components.rollout import Collector
from components.types import Prompt, Score


def measure_generation(
    probes: ProbeSet, settings: CanarySettings, collector: Collector, marker: str | None
) -> Measured:
    """One set by generation; ``marker`` is what the run's verifier reads an answer after, if it reads one."""
    sampling = collector.sampling(seed=0, n=1, temperature=0.0)
    if probes.probes[0].judged == "verifier":
        groups = collector.groups([_prompt(probe) for probe in probes.probes], sampling)
        return Measured(probes, "generation", tuple(_verified(group.scores[0]) for group in groups))
    texts = iter(collector.texts([text for probe in probes.probes for text in probe.texts], sampling))
    outcomes = (judge_texts(probe, [next(texts) for _ in probe.texts], marker, settings) for probe in probes.probes)
    return Measured(probes, "generation", tuple(outcomes))


def _prompt(probe: Probe) -> Prompt:
    return Prompt(f"canary-{probe.id}", probe.texts[0], probe.answer, solution=probe.answer)


def _verified(score: Score) -> Outcome:
    """Neither right nor wrong where the verifier could not judge."""
    return Outcome(score.accuracy, None if score.accuracy is None else score.accuracy == 1)
