"""What every signal means: its unit, the range of what can occur, what measuring it costs, and what computes it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal


@dataclass(frozen=True, slots=True)
class Signal:
    """One named number per step.

    ``low`` and ``high`` bound every value that can occur. ``source`` computes it: the sampled groups, the learner, the
    schedule, the dev split, the second verifier, a canary, or the run itself. ``cost`` is what measuring it takes
    besides the update itself: nothing, a forward pass of the reference policy, or sampling the dev split or a probe.
    """

    unit: str
    low: float
    high: float
    source: Literal["groups", "learner", "schedule", "dev", "second", "canary", "clusters", "run"]
    meaning: str
    cost: Literal["free", "forward", "sampling"] = "free"


SIGNALS: dict[str, Signal] = {
    "reward": Signal("reward", -inf, inf, "groups", "mean shaped reward of the scorable completions"),
    "shaping": Signal("reward", -inf, inf, "groups", "mean of the other parts of the reward than accuracy"),
    "accuracy": Signal("share", 0, 1, "groups", "mean raw accuracy of the scorable completions"),
    "reward_std": Signal("reward", 0, inf, "groups", "standard deviation of the reward within a group, mean"),
    "zero_variance_share": Signal("groups", 0, 1, "groups", "groups whose raw accuracies are all equal"),
    "all_right_share": Signal("groups", 0, 1, "groups", "groups in which everything is right"),
    "all_wrong_share": Signal("groups", 0, 1, "groups", "groups in which everything is wrong"),
    "zero_variance_cluster_max": Signal(
        "groups", 0, 1, "clusters", "zero_variance_share of the cluster where it is largest"
    ),
    "ties_broken_share": Signal(
        "groups", 0, 1, "groups", "groups of equal raw accuracies whose rewards differ: a gradient from shaping"
    ),
    "effective_prompts": Signal("count", 0, inf, "groups", "groups drawn whose raw accuracies differ"),
    "distinct_prompts": Signal("count", 0, inf, "groups", "different questions, by text, in the step"),
    "top_prompt_share": Signal("groups", 0, 1, "groups", "of the question, by text, that was drawn most often"),
    "accuracy_jump": Signal(
        "share", -1, 1, "run", "largest rise of one question's accuracy within five steps (2606.10931)"
    ),
    "completions_sampled": Signal("count", 0, inf, "groups", "completions drawn, before any filter"),
    "groups_sampled": Signal("count", 0, inf, "groups", "groups drawn, before any filter"),
    "groups_trained": Signal("count", 0, inf, "groups", "groups in the update"),
    "attempts": Signal("count", 0, inf, "groups", "batches of prompts drawn by dynamic sampling"),
    "length_mean": Signal("tokens", 0, inf, "groups", "mean completion length"),
    "length_p95": Signal("tokens", 0, inf, "groups", "95th percentile of the completion length"),
    "length_right": Signal("tokens", 0, inf, "groups", "mean length of the right completions"),
    "length_wrong": Signal("tokens", 0, inf, "groups", "mean length of the other scorable completions"),
    "length_gap": Signal("tokens", -inf, inf, "groups", "length_right - length_wrong"),
    "truncated_share": Signal("completions", 0, 1, "groups", "completions that hit the length limit"),
    "unique_share": Signal("completions", 0, 1, "groups", "different texts in a group, mean over groups"),
    "top_completion_share": Signal("completions", 0, 1, "groups", "of the text written most, over all prompts"),
    "repetition_share": Signal(
        "3-grams", 0, 1, "groups", "token 3-grams that stood in the completion before, mean (2502.03373)"
    ),
    "all_unscorable_share": Signal("groups", 0, 1, "groups", "groups in which nothing could be judged"),
    "unscorable_share": Signal("completions", 0, 1, "groups", "completions the verifier could not judge"),
    "loss": Signal("loss", -inf, inf, "learner", "the objective, mean over the step's updates"),
    "entropy": Signal("nats/token", 0, inf, "learner", "exact entropy at the sampling temperature"),
    "entropy_p10": Signal("nats/token", 0, inf, "learner", "10th percentile of the tokens' exact entropies"),
    "kl_ref": Signal("nats/token", 0, inf, "learner", "k3 estimate of KL(policy || SFT checkpoint)", "forward"),
    "kl_old": Signal("nats/token", 0, inf, "learner", "k3 estimate of KL(old || updated), over the updates"),
    "clip_low": Signal("tokens", 0, 1, "learner", "tokens whose gradient the lower clip removed"),
    "clip_high": Signal("tokens", 0, 1, "learner", "tokens whose gradient the upper clip removed"),
    "ratio_max": Signal("ratio", 0, inf, "learner", "largest importance ratio against the old policy"),
    "ratio_min": Signal("ratio", 0, inf, "learner", "smallest importance ratio against the old policy"),
    "ratio_mean": Signal("ratio", 0, inf, "learner", "mean importance ratio; 1 but for noise"),
    "staleness": Signal("updates", 0, inf, "learner", "made since the sampler got its weights, mean"),
    "staleness_max": Signal(
        "updates", 0, inf, "learner", "made since the sampler got its weights, largest; with asynchrony"
    ),
    "drift_mean": Signal("nats", 0, inf, "learner", "mismatch_mean of rollouts that are older than the policy"),
    "drift_max": Signal("nats", 0, inf, "learner", "mismatch_max of rollouts that are older than the policy"),
    "drift_k3": Signal("nats/token", 0, inf, "learner", "k3 estimate of KL(older policy || learner)"),
    "mismatch_mean": Signal("nats", 0, inf, "learner", "mean |old_logp - rollout_logp|"),
    "mismatch_max": Signal("nats", 0, inf, "learner", "largest |old_logp - rollout_logp|"),
    "mismatch_k3": Signal("nats/token", 0, inf, "learner", "k3 estimate of KL(sampler || learner)"),
    "ess": Signal("share", 0, 1, "learner", "effective sample size of the sampler correction"),
    "tis_truncated": Signal("tokens", 0, 1, "learner", "tokens whose correction weight hit its cap"),
    "routing_agreement": Signal(
        "expert sets", 0, 1, "learner", "equal in sampler and learner, per token and layer; of an MoE policy"
    ),
    "advantage_capped": Signal("completions", 0, 1, "learner", "advantages cut to objective.advantage_cap"),
    "redistributed_share": Signal("completions", 0, 1, "learner", "whose credit RREDCoT moved, of those with any"),
    "redistribution_rows": Signal("count", 0, inf, "learner", "rows that RREDCoT scored for that"),
    "explained_variance": Signal("share", -inf, 1, "learner", "of the returns, by the critic, before it learns"),
    "critic_fallback": Signal("0 or 1", 0, 1, "learner", "the critic was not used because it explains nothing"),
    "value_loss": Signal("loss", 0, inf, "learner", "of the critic before its first update of the step"),
    "critic_grad_norm": Signal("norm", 0, inf, "learner", "largest gradient norm of the critic's updates"),
    "critic_nonfinite": Signal("count", 0, inf, "learner", "critic updates skipped: NaN or infinity"),
    "rejected_share": Signal("tokens", 0, 1, "learner", "tokens whose loss a correction or mask set to 0"),
    "nonfinite_tokens": Signal("tokens", 0, 1, "learner", "tokens left out: a log-probability is not finite"),
    "kl_beta": Signal("weight", 0, inf, "learner", "what multiplies the KL term"),
    "entropy_coef": Signal("weight", 0, inf, "learner", "what multiplies the entropy bonus"),
    "grad_norm": Signal("norm", 0, inf, "learner", "largest gradient norm of the step, before clipping"),
    "nonfinite": Signal("count", 0, inf, "learner", "updates skipped and signals lost to NaN or infinity"),
    "updates_skipped": Signal("count", 0, inf, "learner", "updates refused: NaN, infinity, too large"),
    "nonfinite_weights": Signal("count", 0, inf, "learner", "tensors of the policy with a NaN or infinity"),
    "lr": Signal("rate", 0, 1, "learner", "learning rate of the last update"),
    "dev_pass_at_1": Signal("share", 0, 1, "dev", "pass@1 on fixed dev prompts, every eval_every steps", "sampling"),
    "dev_pass_at_k": Signal("share", 0, 1, "dev", "pass@k on the same samples", "sampling"),
    "dev_pass_at_1_se": Signal("share", 0, 1, "dev", "standard error of dev_pass_at_1 over prompts", "sampling"),
    "dev_pass_at_k_se": Signal("share", 0, 1, "dev", "standard error of dev_pass_at_k over prompts", "sampling"),
    "fall_evidence": Signal(
        "nats",
        -inf,
        inf,
        "dev",
        "evidence that held-out accuracy, of all prompts or of one family, is below its best (2203.03532)",
        "sampling",
    ),
    "fall_evidence_since": Signal(
        "step", -1, inf, "dev", "the last measurement that is no part of that evidence", "sampling"
    ),
    "same_weights_fall": Signal(
        "nats",
        -inf,
        inf,
        "dev",
        "evidence that a policy answers worse after the return to it than when it was saved",
        "sampling",
    ),
    "train_dev_gap": Signal(
        "share", -1, 1, "dev", "accuracy sampled - dev, on prompts of the same family and difficulty", "sampling"
    ),
    "second_compared": Signal("count", 0, inf, "second", "completions that the second verifier judged too"),
    "second_disagreement": Signal("completions", 0, 1, "second", "of those: judged differently by the two"),
    "second_doubted": Signal("completions", 0, 1, "second", "of those: accepted by the first verifier only"),
    "canary_drop": Signal(
        "share", 0, 1, "canary", "largest fall of a probe set of the step below its own first score", "sampling"
    ),
    "canaries_beyond_warn": Signal("count", 0, inf, "canary", "sets of level warn beyond their limits", "sampling"),
    "canaries_beyond_rollback": Signal("count", 0, inf, "canary", "sets of level rollback beyond theirs", "sampling"),
    "canaries_beyond_stop": Signal("count", 0, inf, "canary", "sets of level stop beyond their limits", "sampling"),
    "agreement": Signal("0 or 1", 0, 1, "second", "whether right is what both verifiers accept"),
    "schedule_coverage": Signal("prompts", 0, 1, "schedule", "training prompts drawn at least once"),
    "schedule_in_band": Signal("prompts", 0, 1, "schedule", "prompts of the step at the policy's boundary"),
    "schedule_reached": Signal("prompts", 0, 1, "schedule", "how far the windows have moved through the data"),
    "schedule_closed": Signal("prompts", 0, 1, "schedule", "training prompts that the gate did not admit"),
    "schedule_ended": Signal("count", 0, inf, "schedule", "groups not completed after their first stage"),
    "schedule_skipped": Signal("count", 0, inf, "schedule", "prompts passed over since the step before"),
    "schedule_forecast_error": Signal(
        "squared", 0, 1, "schedule", "Brier score of the forecast that a group is mixed, in the last draw"
    ),
    "schedule_pool_easy": Signal("prompts", 0, 1, "schedule", "training prompts last measured as easy"),
    "schedule_pool_normal": Signal("prompts", 0, 1, "schedule", "training prompts last measured in between"),
    "schedule_pool_hard": Signal("prompts", 0, 1, "schedule", "training prompts last measured as hard"),
    "broken_settings": Signal(
        "count", 0, inf, "run", "invariants of the settings in force that do not hold in the step"
    ),
    "broken_sampler": Signal("count", 0, inf, "run", "invariants of what was sampled that do not hold in the step"),
    "broken_data": Signal("count", 0, inf, "run", "invariants of the training prompts that do not hold in the step"),
    "broken_verifier": Signal("count", 0, inf, "run", "invariants of the verifier that do not hold in the step"),
    "broken_learner": Signal("count", 0, inf, "run", "invariants of the update that do not hold in the step"),
    "broken_schedule": Signal("count", 0, inf, "run", "invariants of the draws that do not hold in the step"),
    "golden_differ": Signal(
        "completions", 0, 1, "run", "of those that the verifier judged again: judged otherwise than before"
    ),
    "golden_second": Signal(
        "completions", 0, 1, "second", "golden items that the second verifier judges as the first did at first"
    ),
    "schedule_differ": Signal("count", 0, inf, "schedule", "prompts that are not those that it draws"),
    "repeat_evidence": Signal(
        "nats", -inf, inf, "run", "evidence that completions repeat more often than their probability says"
    ),
    "reversal_evidence": Signal(
        "nats", -inf, inf, "learner", "evidence that updates do not raise what had positive advantages", "forward"
    ),
    "update_move": Signal(
        "nats/token", 0, 5, "learner", "mean |change of log-probability| by an update, on a few of its rows", "forward"
    ),
    "mismatch_explained": Signal(
        "nats/token", 0, inf, "learner", "mismatch_k3 that the number formats of sampler and learner explain"
    ),
    "reward_fall": Signal(
        "nats", -inf, inf, "run", "of another trainer's log: evidence that the reward fell below its best (2203.03532)"
    ),
    "reward_lost": Signal("share", 0, 1, "run", "of another trainer's log: of its best reward, gone by now"),
    "mismatch_times": Signal("ratio", 0, inf, "learner", "mismatch_k3 over what is usual at most in this run"),
    "batch_torn": Signal("0 or 1", 0, 1, "learner", "the batch that came to the learner is not the one built"),
    "weights_moved": Signal("count", 0, inf, "learner", "tensors that changed between two updates"),
    "weights_still": Signal("count", 0, inf, "learner", "tensors that the latest update did not change"),
    "update_largest": Signal("rates", 0, inf, "learner", "largest change of a weight over the learning rate"),
    "grad_clip": Signal("norm", 0, inf, "learner", "to which gradients are clipped"),
    "beta_first": Signal("share", 0, 1, "learner", "decay of AdamW's first moment"),
    "beta_second": Signal("share", 0, 1, "learner", "decay of AdamW's second moment"),
    "weight_decay": Signal("weight", 0, inf, "learner", "of AdamW"),
    "schedule_repeated": Signal("prompts", 0, 1, "schedule", "of the step: drawn in the step before, too"),
    "optimizer_lag": Signal("updates", 0, inf, "learner", "updates of the learner that its moments lack"),
    "progress": Signal("steps", 0, inf, "run", "training steps that the policy has behind it"),
    "quarantined": Signal("prompts", 0, 1, "run", "training prompts that take no part in updates any more"),
}

PREFIXES: dict[str, Signal] = {
    "part_": Signal("reward", -inf, inf, "groups", "mean of one reward part other than accuracy, weighted"),
    "metric_": Signal("number", -inf, inf, "groups", "mean of a figure that the verifier only measures"),
    "zero_variance_cluster_": Signal("groups", 0, 1, "groups", "zero_variance_share of one cluster of prompts"),
    "form_": Signal(
        "nats", -inf, inf, "dev", "evidence that a share of held-out completions has fallen (2203.03532)", "sampling"
    ),
    "mismatch_server_": Signal("nats/token", 0, inf, "learner", "mismatch_k3 of what one server sampled"),
    "drift_server_": Signal("nats/token", 0, inf, "learner", "drift_k3 of what one server sampled"),
    "canary_": Signal("share", 0, 1, "canary", "greedy answers to one frozen probe set that are right", "sampling"),
    "likelihood_": Signal("share", 0, 1, "canary", "probability of the right choices of one probe set", "forward"),
    "margin_": Signal("nats", -inf, inf, "canary", "lead of the right choices of one probe set", "forward"),
}
"""Signals whose names end with what the settings name, such as ``part_overlong`` or ``canary_fairness``."""


def find_signal(name: str) -> Signal | None:
    """What a signal means, from `SIGNALS` or by its prefix."""
    prefixed = (signal for prefix, signal in PREFIXES.items() if name.startswith(prefix) and name != prefix)
    return SIGNALS.get(name) or next(prefixed, None)
