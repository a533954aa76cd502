"""What pods on Kubernetes need of the rest of the settings."""

from __future__ import annotations

from collections.abc import Iterator

from components.config.kubernetes import KubernetesSettings, S3State
from components.config.servers import VllmEngine
from components.config.settings import Sections


def section(s: Sections) -> Iterator[str]:
    if s.launch.kind == "kubernetes" and s.launch.kubernetes is None:
        yield (
            "launch.kind kubernetes needs launch.kubernetes: at least images.learner and shared; see "
            "configs/kubernetes.yaml"
        )


def rollout_pods(s: Sections) -> Iterator[str]:
    """Servers that the run starts are pods of their own."""
    how, engine = _cluster(s), s.rollout.engine
    if how is None or not isinstance(engine, VllmEngine) or engine.urls:
        return
    if how.images.rollout is None:
        yield "rollout.engine.processes are pods on Kubernetes: launch.kubernetes.images.rollout must name their image"
    if engine.devices or engine.python is not None:
        yield (
            "rollout.engine.devices and rollout.engine.python are for servers on this machine; on Kubernetes a pod has "
            "its own GPUs (launch.kubernetes.rollout.gpus) and its image's Python: leave them out"
        )
    if how.rollout.gpus not in (0, engine.tensor_parallel):
        yield (
            f"launch.kubernetes.rollout.gpus ({how.rollout.gpus}) must be rollout.engine.tensor_parallel "
            f"({engine.tensor_parallel}): a pod is one server; 0 samples on CPUs"
        )
    if engine.transfer == "adapter":
        yield (
            "rollout.engine.transfer adapter is for servers on the machine of the learner; on Kubernetes use transfer "
            "files or broadcast"
        )
    if isinstance(how.shared, S3State) and engine.transfer == "files":
        yield (
            "rollout.engine.transfer files needs a folder that learner and servers share, which shared.kind s3 does "
            "not give; set rollout.engine.transfer broadcast, or launch.kubernetes.shared.kind volume"
        )


def learner_pods(s: Sections) -> Iterator[str]:
    """Every pod of the learner has as many ranks."""
    how, ranks = _cluster(s), s.learner.ranks
    if how is None:
        return
    if not s.learner.has_ranks and how.learner.processes > 1:
        yield (
            f"launch.kubernetes.learner.processes ({how.learner.processes}) is for a learner of several ranks: set "
            "learner.kind fsdp2 or deepspeed with as many learner.ranks.processes, or 1"
        )
    elif s.learner.has_ranks and ranks.processes % how.learner.processes:
        yield (
            f"learner.ranks.processes ({ranks.processes}) must be a multiple of launch.kubernetes.learner.processes "
            f"({how.learner.processes}): every pod has as many"
        )


def state(s: Sections) -> Iterator[str]:
    how = _cluster(s)
    if how is not None and s.rollout.engine.kind == "sglang" and isinstance(how.shared, S3State):
        yield "rollout.engine.kind sglang takes weights as files: set launch.kubernetes.shared.kind volume"


def _cluster(s: Sections) -> KubernetesSettings | None:
    return s.launch.kubernetes if s.launch.kind == "kubernetes" else None
