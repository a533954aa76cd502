"""A run's settings as its pods get them: what this machine would start, other pods have started.

Only settings change that a run does not depend on (`components.config.root`), so that it is the same run anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.config import Settings
from components.config.kubernetes import KubernetesSettings
from components.config.servers import STARTED, VllmEngine
from components.launch.kubernetes.names import METRICS_PORT


def learner_nodes(settings: Settings, how: KubernetesSettings) -> int:
    """Pods that the learner is spread over; rank 0, which runs the loop, is in the first."""
    return settings.learner.ranks.processes // how.learner.processes if settings.learner.has_ranks else 1


def servers(settings: Settings) -> int:
    """Pods with a server that the run starts; none where the stage samples by itself, or servers are up already."""
    engine = settings.rollout.engine
    return engine.processes if isinstance(engine, VllmEngine) else 0


def for_the_pods(settings: Settings, urls: Sequence[str]) -> Settings:
    """The same run for its pods, with servers at these addresses. Ranks are there already, started by torchrun."""
    changed = settings.model_dump(mode="json")
    changed["launch"] = {"kind": "processes" if settings.learner.has_ranks else "inline"}
    changed["health"]["prometheus"] |= {"port": METRICS_PORT, "host": "0.0.0.0"}
    if urls:
        changed["rollout"]["engine"] = _given(changed["rollout"]["engine"], urls)
    return Settings.model_validate(changed)


def _given(engine: dict[str, Any], urls: Sequence[str]) -> dict[str, Any]:
    """The engine's settings for servers that run, without the options that they were started with."""
    kept = {name: value for name, value in engine.items() if name not in (*STARTED, "processes")}
    return {**kept, "urls": list(urls)}
