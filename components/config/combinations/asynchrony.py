"""What goes with rollouts that are older than the policy."""

from __future__ import annotations

from collections.abc import Iterator

from components.config.combinations.ratio import is_relative_to_the_sampler
from components.config.rollout import TorchEngine
from components.config.servers import SglangEngine
from components.config.settings import Sections


def asynchrony(s: Sections) -> Iterator[str]:
    how = s.rollout.asynchrony
    if how is None:
        return
    if s.objective.correction is None and not is_relative_to_the_sampler(s.objective.ratio):
        yield (
            f"rollout.asynchrony samples from a policy up to {how.max_staleness} steps old, and nothing weighs the "
            "difference; set objective.correction (kind tis_token), or use a ratio relative to the sampler (dppo_tv, "
            "dppo_kl, cispo with anchor rollout)"
        )
    if how.in_flight and isinstance(s.rollout.engine, TorchEngine):
        yield (
            "rollout.asynchrony.in_flight hands weights over in the middle of a completion, which rollout.engine.kind "
            "torch cannot take; use kind vllm, or leave it off"
        )
    if how.in_flight and isinstance(s.rollout.engine, SglangEngine):
        yield (
            "rollout.asynchrony.in_flight needs to know the weights behind every token, and servers of "
            "rollout.engine.kind sglang give one label for a whole completion; use kind vllm, or leave it off"
        )
    if how.in_flight and s.data.source.kind == "verifiers":
        yield (
            "rollout.asynchrony.in_flight needs to know the weights behind every token, and an environment "
            "(data.source.kind verifiers) joins turns without; use one of the two"
        )
    if how.in_flight and s.rollout.tool is not None:
        yield (
            "rollout.asynchrony.in_flight needs to know the weights behind every token, and a rollout.tool joins turns "
            "without; use one of the two"
        )
