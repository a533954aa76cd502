"""Sampling while the learner is at work."""

from __future__ import annotations

from pydantic import Field

from components.config.base import Section


class Asynchrony(Section):
    """Rollouts are sampled while the learner updates, so they come from a policy of some steps before (2410.18252).

    The sampler's log-probabilities are those of that policy, and ``objective.correction`` weighs the difference.
    """

    max_staleness: int = Field(
        1,
        ge=1,
        description="Training steps by which a rollout may be older than the policy that learns from it: 1 is one step "
        "off. So many rollouts are sampled ahead, and no more.",
    )
    in_flight: bool = Field(
        False,
        description="New weights are handed over while completions are being written, whose later tokens are then "
        "fresher. Needs servers of kind vllm. Two runs are then no more the same.",
    )
