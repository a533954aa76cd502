"""How weights, gradients and optimizer state of one model lie in the memory of one process, or of several.

- `base` — the `Sharding` seam
- `plain` — all of it in one process
- `spread` — what the others have in common
- `source` — where ranks get the weights that they begin with
- `zero` — DeepSpeed ZeRO; `zero_pieces` is what differs from stage to stage
- `fsdp2` — PyTorch's fully sharded data parallel

`SHARDINGS` maps ``learner.kind`` to what a rank of that learner holds; the policy that they take has its parameters on
the meta device. DeepSpeed is imported when it is used: that takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable

from components.config.training import LearnerSettings
from components.learner.sharding.base import Sharding, ShardingOf
from components.learner.sharding.source import Source
from components.policy import Policy


def _zero(policy: Policy, settings: LearnerSettings, source: Source) -> Sharding:
    from components.learner.sharding.zero import Zero

    return Zero(policy, settings, source)


def _fsdp2(policy: Policy, settings: LearnerSettings, source: Source) -> Sharding:
    from components.learner.sharding.fsdp2 import Fsdp2

    return Fsdp2(policy, settings, source)


SHARDINGS: dict[str, Callable[[Policy, LearnerSettings, Source], Sharding]] = {
    "deepspeed": _zero,
    "fsdp2": _fsdp2,
}

__all__ = ["SHARDINGS", "Sharding", "ShardingOf", "Source"]
