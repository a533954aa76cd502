"""A run's settings as its driver gets them: what this machine would start, other pods have started.

Only settings change that a run does not depend on (`components.config.logistics`), so that it is the same run anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.config import Settings
from components.config.kubernetes import KubernetesSettings, S3State
from components.config.servers import STARTED, VllmEngine
from components.launch.kubernetes.names import METRICS_PORT


def learner_nodes(settings: Settings, how: KubernetesSettings) -> int:
    """Pods of ranks that the run starts; none where the learner is in the driver, or elsewhere already."""
    if settings.learner.kind == "torch" or settings.learner.ranks.address:
        return 0
    return settings.learner.ranks.processes // how.learner.processes


def servers(settings: Settings) -> int:
    """Pods with a server that the run starts; none where the driver samples, or servers are up already."""
    engine = settings.rollout.engine
    return engine.processes if isinstance(engine, VllmEngine) else 0


def for_the_driver(settings: Settings, how: KubernetesSettings, urls: Sequence[str], ranks: str | None) -> Settings:
    """The same run for the process that is its driver, with servers and ranks at these addresses."""
    changed = settings.model_dump(mode="json")
    elsewhere = settings.learner.kind == "torch" or ranks is not None or settings.learner.ranks.address is not None
    changed["launch"] = {"kind": "inline" if elsewhere else "processes"}  # a stage without a learner starts no ranks
    changed["health"]["prometheus"] |= {"port": METRICS_PORT, "host": "0.0.0.0"}
    if urls:
        changed["rollout"]["engine"] = _given(changed["rollout"]["engine"], urls)
    if ranks is not None:
        changed["learner"]["ranks"] |= {"address": ranks}
        if isinstance(how.shared, S3State):
            changed["learner"]["ranks"] |= {"shared_folder": False}
    return Settings.model_validate(changed)


def _given(engine: dict[str, Any], urls: Sequence[str]) -> dict[str, Any]:
    """The engine's settings for servers that run, without the options that they were started with."""
    kept = {name: value for name, value in engine.items() if name not in (*STARTED, "processes")}
    return {**kept, "urls": list(urls)}
