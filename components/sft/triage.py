"""Is a checkpoint fit to start RL from? Pure arithmetic on sampled groups (2606.18487, 2510.01624).

RL with a group baseline learns only from groups whose completions differ in reward. So a checkpoint is refused when
hardly a group of this run would, when hardly anything is left to gain, or when more samples find hardly more and the
policy is too sure of itself for that to change. Neither entropy nor pass@k - pass@1 is judged alone: so they refused
checkpoints that RL then improved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb
from typing import Any, NamedTuple

from components.config import Settings
from components.config.policy import TriageSettings
from components.evaluation.passing import pass_at_k
from components.types import Group

LIMITS = {"min_teaching", "min_headroom", "min_entropy", "min_passk_gap"}
"""Settings that a verdict rests on; they are recorded with it."""


class Step(NamedTuple):
    """A step of the training: the groups that it trains on, G of each, and the batches of prompts that dynamic sampling
    may draw for them (1 without it). A critic learns from constant groups as well."""

    group_size: int
    prompts: int
    attempts: int
    critic: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Step:
        """As the settings have it."""
        refill = settings.rollout.dynamic_sampling
        critic = settings.objective.advantage.kind == "gae"
        attempts = refill.max_attempts if refill else 1
        return cls(settings.rollout.group_size, settings.train.prompts_per_step, attempts, critic)


def triage(groups: Sequence[Group], entropy: float, step: Step, limits: TriageSettings) -> dict[str, Any]:
    """The figures and the verdict. The k of pass@k is the size of the ``groups``.

    ``success`` is the mean accuracy of every prompt, by id; the clusters stage holds its difficulty against it.

    ``entropy`` is the mean over the sampled tokens, nats; it is judged together with pass@k - pass@1.
    """
    k = max((len(group.completions) for group in groups), default=0)
    scored = [group for group in groups if group.accuracies]
    right = [(len(g.accuracies), sum(a == 1.0 for a in g.accuracies)) for g in scored]
    zeros = [(len(g.accuracies), sum(a == 0.0 for a in g.accuracies)) for g in scored]
    all_right, all_wrong = constant_share(right, step.group_size), constant_share(zeros, step.group_size)
    all_wrong = all_wrong if scored else 1.0
    completions = [c for g in groups for c in g.completions]
    figures: dict[str, Any] = {
        "prompts": len(groups),
        "k": k,
        "entropy": entropy,
        "pass_at_1": _mean([c / n for n, c in right]),
        "pass_at_k": _mean([pass_at_k(n, c, min(k, n)) for n, c in right]),
        "zero_variance_share": all_right + all_wrong + _mean([_partly(g.accuracies, step.group_size) for g in scored]),
        "all_right_share": all_right,
        "all_wrong_share": all_wrong,
        "truncated_share": _mean([float(c.finish_reason == "length") for c in completions]),
        "unscorable_share": _mean([float(s.accuracy is None) for g in groups for s in g.scores]),
        "families": family_rates(scored),
        "success": {g.prompt.id: round(g.mean_accuracy, 6) for g in scored if g.mean_accuracy is not None},
        "step": step._asdict(),
        "limits": limits.model_dump(include=LIMITS),
    }
    return {**figures, **judged(figures)}


def judged(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict on recorded figures: ``teaching``, ``verdict`` and ``reasons``.

    ``teaching`` is the number of groups of one step whose completions differ in accuracy, as expected from the samples.
    Dynamic sampling makes up for constant groups with further prompts, up to the groups of a step.
    """
    step = Step(**figures["step"])
    varied = 1.0 if step.critic or step.group_size == 1 else 1 - figures["zero_variance_share"]
    teaching = min(float(step.prompts), step.attempts * step.prompts * varied)
    reasons = refusals(figures, teaching)
    return {"teaching": teaching, "verdict": "refuse" if reasons else "accept", "reasons": reasons}


def refusals(figures: Mapping[str, Any], teaching: float) -> list[str]:
    """Why RL should not start from here, with figures; empty when it may."""
    found, limits, step = [], figures["limits"], Step(**figures["step"])
    if teaching < limits["min_teaching"]:
        found.append(
            f"{teaching:.2f} of the {step.prompts} groups of a step would carry a gradient, fewer than "
            f"triage.min_teaching ({limits['min_teaching']:g}): of groups of {step.group_size} "
            f"{figures['all_wrong_share']:.1%} are all wrong and {figures['all_right_share']:.1%} all right"
        )
    if 1 - figures["pass_at_1"] < limits["min_headroom"]:
        found.append(
            f"pass@1 is {figures['pass_at_1']:.1%}: less than triage.min_headroom "
            f"({limits['min_headroom']:.0%}) is left for RL to gain"
        )
    gap = figures["pass_at_k"] - figures["pass_at_1"]
    if gap < limits["min_passk_gap"] and figures["entropy"] < limits["min_entropy"]:
        found.append(
            f"the policy is nearly deterministic and more samples find little: entropy {figures['entropy']:.3f} nats "
            f"per token (triage.min_entropy {limits['min_entropy']:g}), and pass@{figures['k']} only "
            f"{100 * gap:.1f} points above pass@1 (triage.min_passk_gap {100 * limits['min_passk_gap']:g})"
        )
    return found


def constant_share(counted: Sequence[tuple[int, int]], group_size: int) -> float:
    """The share of groups, at the training's group size G, of which all accuracies are the ones that were ``counted``:
    by prompt the number of samples and how many of them had that accuracy.

    The unbiased estimate over all ways to draw G of the n samples: C(c, G) / C(n, G). Of a prompt with fewer than G
    scorable samples all of them are taken.
    """
    drawn = [(n, c, min(group_size, n)) for n, c in counted]
    return _mean([comb(c, size) / comb(n, size) for n, c, size in drawn])


def _partly(accuracies: Sequence[float], group_size: int) -> float:
    """The same for one prompt, of groups whose accuracies are all the same and neither 0 nor 1."""
    values = Counter(value for value in accuracies if value not in (0.0, 1.0))
    return sum(constant_share([(len(accuracies), count)], group_size) for count in values.values())


def family_rates(groups: Sequence[Group]) -> dict[str, float]:
    """pass@1 by family."""
    rates: dict[str, list[float]] = {}
    for group in groups:
        rates.setdefault(group.prompt.family, []).append(group.mean_accuracy or 0.0)
    return {family: _mean(values) for family, values in sorted(rates.items())}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
