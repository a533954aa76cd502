"""How weights, gradients and optimizer state of one model lie in the memory of one process, or of several.

- `base` — the `Sharding` seam, all of it in one process, and what those over several ranks have in common
- `source` — where ranks get the weights that they begin with
- `zero` — DeepSpeed ZeRO
- `fsdp2` — PyTorch's fully sharded data parallel
"""

from __future__ import annotations

from components.config.training import LearnerSettings
from components.learner.sharding.base import Sharding, ShardingOf
from components.learner.sharding.source import Source
from components.policy import Policy


def build_sharding(policy: Policy, settings: LearnerSettings, source: Source) -> Sharding:
    """What a rank of the learner holds that ``settings.kind`` names; ``policy`` has its parameters on the meta device.
    DeepSpeed is imported when it is used: that takes seconds."""
    if settings.kind == "deepspeed":
        from components.learner.sharding.zero import Zero

        return Zero(policy, settings, source)
    from components.learner.sharding.fsdp2 import Fsdp2

    return Fsdp2(policy, settings, source)


__all__ = ["Sharding", "ShardingOf", "Source", "build_sharding"]
