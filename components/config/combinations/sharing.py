"""What goes with a server and a learner that take turns on one GPU."""

from __future__ import annotations

from collections.abc import Iterator

from components.config.servers import VllmEngine
from components.config.settings import Sections


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
