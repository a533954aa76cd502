"""The signals of one training step: what each means, and how those of the sampled groups are computed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import Literal

from components.types import Group, mean_by_name

Cost = Literal["free", "forward", "sampling"]


@dataclass(frozen=True, slots=True)
class Signal:
    """One named number per step.

    ``low`` and ``high`` bound every value that can occur. ``cost`` is what measuring it takes besides the update
    itself: nothing, a forward pass of the reference policy, or sampling the dev split. ``source`` computes it.
    """

    unit: str
    low: float
    high: float
    cost: Cost
    source: Literal["groups", "learner", "schedule", "dev", "second"]
    meaning: str


_INF = math.inf

SIGNALS: dict[str, Signal] = {
    "reward": Signal("reward", -_INF, _INF, "free", "groups", "mean shaped reward of the scorable completions"),
    "accuracy": Signal("share", 0, 1, "free", "groups", "mean raw accuracy of the scorable completions"),
    "zero_variance_share": Signal("groups", 0, 1, "free", "groups", "groups whose raw accuracies are all equal"),
    "all_right_share": Signal("groups", 0, 1, "free", "groups", "groups in which everything is right"),
    "all_wrong_share": Signal("groups", 0, 1, "free", "groups", "groups in which everything is wrong"),
    "groups_sampled": Signal("count", 0, _INF, "free", "groups", "groups drawn, before any filter"),
    "groups_trained": Signal("count", 0, _INF, "free", "groups", "groups in the update"),
    "attempts": Signal("count", 0, _INF, "free", "groups", "batches of prompts drawn by dynamic sampling"),
    "length_mean": Signal("tokens", 0, _INF, "free", "groups", "mean completion length"),
    "length_p95": Signal("tokens", 0, _INF, "free", "groups", "95th percentile of the completion length"),
    "length_right": Signal("tokens", 0, _INF, "free", "groups", "mean length of the right completions"),
    "length_wrong": Signal("tokens", 0, _INF, "free", "groups", "mean length of the other scorable completions"),
    "truncated_share": Signal("completions", 0, 1, "free", "groups", "completions that hit the length limit"),
    "all_unscorable_share": Signal("groups", 0, 1, "free", "groups", "groups in which nothing could be judged"),
    "unscorable_share": Signal("completions", 0, 1, "free", "groups", "completions the verifier could not judge"),
    "loss": Signal("loss", -_INF, _INF, "free", "learner", "the objective, mean over the step's updates"),
    "entropy": Signal("nats/token", 0, _INF, "free", "learner", "exact entropy at the sampling temperature"),
    "kl_ref": Signal("nats/token", 0, _INF, "forward", "learner", "k3 estimate of KL(policy || SFT checkpoint)"),
    "clip_low": Signal("tokens", 0, 1, "free", "learner", "tokens whose gradient the lower clip removed"),
    "clip_high": Signal("tokens", 0, 1, "free", "learner", "tokens whose gradient the upper clip removed"),
    "ratio_max": Signal("ratio", 0, _INF, "free", "learner", "largest importance ratio against the old policy"),
    "mismatch_mean": Signal("nats", 0, _INF, "free", "learner", "mean |old_logp - rollout_logp|"),
    "mismatch_max": Signal("nats", 0, _INF, "free", "learner", "largest |old_logp - rollout_logp|"),
    "mismatch_k3": Signal("nats/token", 0, _INF, "free", "learner", "k3 estimate of KL(sampler || learner)"),
    "ess": Signal("share", 0, 1, "free", "learner", "effective sample size of the sampler correction"),
    "tis_truncated": Signal("tokens", 0, 1, "free", "learner", "tokens whose correction weight hit its cap"),
    "routing_agreement": Signal(
        "expert sets", 0, 1, "free", "learner", "equal in sampler and learner, per token and layer; of an MoE policy"
    ),
    "advantage_capped": Signal("completions", 0, 1, "free", "learner", "advantages cut to objective.advantage_cap"),
    "redistributed_share": Signal(
        "completions", 0, 1, "free", "learner", "whose credit RREDCoT moved, of those with any"
    ),
    "redistribution_rows": Signal("count", 0, _INF, "free", "learner", "rows that RREDCoT scored for that"),
    "explained_variance": Signal(
        "share", -_INF, 1, "free", "learner", "of the returns, by the critic, before it learns"
    ),
    "critic_fallback": Signal("0 or 1", 0, 1, "free", "learner", "the critic was not used because it explains nothing"),
    "value_loss": Signal("loss", 0, _INF, "free", "learner", "of the critic before its first update of the step"),
    "critic_grad_norm": Signal("norm", 0, _INF, "free", "learner", "largest gradient norm of the critic's updates"),
    "critic_nonfinite": Signal("count", 0, _INF, "free", "learner", "critic updates skipped: NaN or infinity"),
    "rejected_share": Signal("tokens", 0, 1, "free", "learner", "tokens whose loss a correction or mask set to 0"),
    "nonfinite_tokens": Signal("tokens", 0, 1, "free", "learner", "tokens left out: a log-probability is not finite"),
    "kl_beta": Signal("weight", 0, _INF, "free", "learner", "what multiplies the KL term"),
    "entropy_coef": Signal("weight", 0, _INF, "free", "learner", "what multiplies the entropy bonus"),
    "grad_norm": Signal("norm", 0, _INF, "free", "learner", "largest gradient norm of the step, before clipping"),
    "nonfinite": Signal("count", 0, _INF, "free", "learner", "updates skipped and signals lost to NaN or infinity"),
    "lr": Signal("rate", 0, 1, "free", "learner", "learning rate of the last update"),
    "dev_pass_at_1": Signal("share", 0, 1, "sampling", "dev", "pass@1 on fixed dev prompts, every eval_every steps"),
    "dev_pass_at_k": Signal("share", 0, 1, "sampling", "dev", "pass@k on the same samples"),
    "second_compared": Signal("count", 0, _INF, "free", "second", "completions that the second verifier judged too"),
    "second_disagreement": Signal("completions", 0, 1, "free", "second", "of those: judged differently by the two"),
    "second_doubted": Signal("completions", 0, 1, "free", "second", "of those: accepted by the first verifier only"),
    "schedule_coverage": Signal("prompts", 0, 1, "free", "schedule", "training prompts drawn at least once"),
    "schedule_in_band": Signal("prompts", 0, 1, "free", "schedule", "prompts of the step at the policy's boundary"),
    "schedule_reached": Signal("prompts", 0, 1, "free", "schedule", "how far the windows have moved through the data"),
    "schedule_closed": Signal("prompts", 0, 1, "free", "schedule", "training prompts that the gate did not admit"),
    "schedule_pool_easy": Signal("prompts", 0, 1, "free", "schedule", "training prompts last measured as easy"),
    "schedule_pool_normal": Signal("prompts", 0, 1, "free", "schedule", "training prompts last measured in between"),
    "schedule_pool_hard": Signal("prompts", 0, 1, "free", "schedule", "training prompts last measured as hard"),
}

PREFIXES: dict[str, Signal] = {
    "part_": Signal("reward", -_INF, _INF, "free", "groups", "mean of one reward part beside the accuracy, weighted"),
    "metric_": Signal("number", -_INF, _INF, "free", "groups", "mean of a figure that the verifier only measures"),
}
"""Signals whose names end with what the reward settings name, such as ``part_overlong``."""


def find_signal(name: str) -> Signal | None:
    """What a signal means, from `SIGNALS` or by its prefix."""
    prefixed = (signal for prefix, signal in PREFIXES.items() if name.startswith(prefix) and name != prefix)
    return SIGNALS.get(name) or next(prefixed, None)


def step_signals(
    sampled: Sequence[Group], trained: Sequence[Group], update: Mapping[str, float], attempts: int
) -> dict[str, float]:
    """Every signal that exists in a step.

    Args:
        sampled: all groups drawn in the step, before any filter; the group signals describe these.
        trained: the groups in the update.
        update: what learner, schedule and dev evaluation measured. A value that is not finite is left out and
            counted in ``nonfinite``.
        attempts: batches of prompts drawn.

    Raises:
        ValueError: ``update`` holds a name that `SIGNALS` does not describe.
    """
    unknown = sorted(name for name in update if find_signal(name) is None)
    if unknown:
        raise ValueError(f"undocumented signals: {', '.join(unknown)}; describe them in SIGNALS")
    finite = {name: float(value) for name, value in update.items() if math.isfinite(value)}
    return {
        **_outcomes(sampled),
        **_rewards(sampled),
        **_lengths(sampled),
        "groups_sampled": float(len(sampled)),
        "groups_trained": float(len(trained)),
        "attempts": float(attempts),
        **finite,
        "nonfinite": finite.get("nonfinite", 0.0) + len(update) - len(finite),
    }


def _outcomes(groups: Sequence[Group]) -> dict[str, float]:
    """Rewards, accuracies and the split of the groups without a gradient; unscorable is neither right nor wrong."""
    scores = [score for group in groups for score in group.scores]
    scorable = [score for score in scores if score.accuracy is not None]
    judged = [group.accuracies for group in groups if group.accuracies]
    return _means(
        {
            "reward": (score.reward for score in scorable),
            "accuracy": chain.from_iterable(judged),
            "zero_variance_share": (len(set(values)) == 1 for values in judged),
            "all_right_share": (min(values) == 1 for values in judged),
            "all_wrong_share": (max(values) == 0 for values in judged),
            "unscorable_share": (score.accuracy is None for score in scores),
            "all_unscorable_share": (not group.accuracies for group in groups),
        }
    )


def _rewards(groups: Sequence[Group]) -> dict[str, float]:
    """The parts of the reward and what was measured beside it, over the scorable completions that have them."""
    scorable = [score for group in groups for score in group.scores if score.accuracy is not None]
    parts, metrics = mean_by_name(s.parts for s in scorable), mean_by_name(s.metrics for s in scorable)
    return {f"part_{name}": mean for name, mean in parts.items()} | {f"metric_{n}": mean for n, mean in metrics.items()}


def _lengths(groups: Sequence[Group]) -> dict[str, float]:
    """Completion lengths in tokens, by outcome."""
    pairs = [pair for group in groups for pair in zip(group.completions, group.scores, strict=True)]
    lengths = sorted(len(completion.token_ids) for completion, _ in pairs)
    means = _means(
        {
            "length_mean": lengths,
            "length_right": (len(c.token_ids) for c, s in pairs if s.accuracy == 1),
            "length_wrong": (len(c.token_ids) for c, s in pairs if s.accuracy is not None and s.accuracy < 1),
            "truncated_share": (c.finish_reason == "length" for c, _ in pairs),
        }
    )
    return {**means, "length_p95": float(lengths[math.ceil(0.95 * len(lengths)) - 1])} if lengths else means


def _means(columns: Mapping[str, Iterable[float]]) -> dict[str, float]:
    """The mean of each column that has a value; a mean of nothing does not exist."""
    filled = {name: list(values) for name, values in columns.items()}
    return {name: fmean(values) for name, values in filled.items() if values}
