"""The demo at a size that takes seconds a stage. Nothing is learned; everything is exercised."""

from __future__ import annotations

SMALL = (
    "threads=1",
    "data.source.rows=1200",
    "reward.sandbox.workers=1",
    "policy.model.hidden_size=64",
    "policy.model.layers=1",
    "sft.steps=30",
    "sft.batch_size=16",
    "sft.warmup=5",
    "sft.checkpoint_every=5",
    "admission.max_prompt_share=0.1",
    "triage.prompts=16",
    "triage.samples=8",
    "clusters.k=4",
    "schedule={kind: ads, window: 4, active: 2, move: outside}",
    "rollout.group_size=4",
    "rollout.max_new_tokens=24",
    # An untrained model is never right: what dynamic sampling would keep is nothing, and a run without an update has
    # signals missing, which the gate takes for a failure.
    "rollout.dynamic_sampling=null",
    "rollout.two_stage=null",
    "health.responses.interventions=0",
    "reward.soft_overlong=null",
    "train.prompts_per_step=8",
    "train.steps=12",
    "train.eval_every=5",
    "train.eval_prompts=8",
    "train.eval_samples=4",
    "train.checkpoint_every=3",
    "evaluation.prompts=24",
    "evaluation.suites.more_digits.prompts=8",
)
NO_LIMITS = (
    "triage.min_teaching=0",
    "triage.min_entropy=0",
    "triage.min_headroom=0",
    "gate.min_gain=-1",
    "gate.min_prompts=2",
    "gate.max_truncated=1",
    "health.canaries.carries.max_drop=1",
    "health.canaries.comparison.max_drop=1",
    "health.canaries.layout.max_drop=1",
    "health.canaries.names.max_drop=1",
)
"""An untrained model passes triage and gate: for the way to a candidate and its approval."""
