"""What goes with rollouts that are older than the policy, and with one GPU for a server and a learner."""

from __future__ import annotations

from collections.abc import Iterator

from components.config.combinations.ratio import is_relative_to_the_sampler
from components.config.rollout import TorchEngine
from components.config.servers import SglangEngine, VllmEngine
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
    joined = {
        "an environment (data.source.kind verifiers)": s.data.source.kind == "verifiers",
        "a rollout.tool": s.rollout.tool is not None,
    }
    for what in (what for what, used in joined.items() if used and how.in_flight):
        yield (
            "rollout.asynchrony.in_flight needs to know the weights behind every token, and "
            f"{what} joins turns without; use one of the two"
        )


def sharing(s: Sections) -> Iterator[str]:
    engine = s.rollout.engine
    if not isinstance(engine, VllmEngine) or not engine.sleep:
        return
    if s.rollout.asynchrony is not None:
        yield (
            "rollout.asynchrony samples while the learner updates, and with rollout.engine.sleep the servers sleep "
            "meanwhile; use one of the two"
        )
    if s.learner.kind == "deepspeed":
        yield (
            "rollout.engine.sleep needs a learner that moves its moments to host memory, and learner.kind deepspeed "
            "keeps them in buffers of its own; use kind torch or fsdp2"
        )
    if engine.transfer == "broadcast":
        yield (
            "rollout.engine.transfer broadcast is a process group of learner and server, and NCCL takes no two ranks "
            "on one GPU, which rollout.engine.sleep is for; use transfer files"
        )
    if engine.transfer == "adapter":
        yield (
            "rollout.engine.transfer adapter leaves the base where it is, and with rollout.engine.sleep the servers "
            "give it up; use transfer files"
        )
    if s.launch.kind == "kubernetes":
        yield (
            "launch.kind kubernetes gives every server a pod with GPUs of its own, and rollout.engine.sleep is for a "
            "server on the GPU of the learner; leave sleep off"
        )
