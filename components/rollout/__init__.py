"""Groups of completions.

- `base` — the `Engine` seam
- `torch_engine` — the embedded engine
- `collect` — sample, score, and refill (dynamic sampling)

`ENGINES` maps ``rollout.engine.kind`` to its class.
"""

from components.config.rollout import RolloutSettings
from components.policy import Policy
from components.rollout.base import Engine, Sampling
from components.rollout.collect import Collector, Rollout
from components.rollout.torch_engine import TorchEngine

ENGINES: dict[str, type[TorchEngine]] = {"torch": TorchEngine}


def build_engine(policy: Policy, settings: RolloutSettings) -> Engine:
    """The engine that the settings name, sampling from ``policy``."""
    return ENGINES[settings.engine.kind](policy, settings.engine)


__all__ = ["ENGINES", "Collector", "Engine", "Rollout", "Sampling", "build_engine"]
