"""How weights, gradients and optimizer state of one model lie in the memory of one process, or of several.

- `base` — the `Sharding` seam
- `plain` — all of it in one process
- `spread` — what the others have in common: one file for all of them, gathered and scattered tensor by tensor
- `zero` — DeepSpeed ZeRO; `zero_pieces` is what differs from stage to stage
- `fsdp2` — PyTorch's fully sharded data parallel

`SHARDINGS` maps ``learner.kind`` to what a rank of that learner holds. DeepSpeed is imported when it is used: that
takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from components.config.training import LearnerSettings
from components.learner.ranks import Ranks
from components.learner.sharding.base import Sharding
from components.policy import Policy


def _zero(policy: Policy, settings: LearnerSettings, ranks: Ranks, device: torch.device) -> Sharding:
    from components.learner.sharding.zero import Zero

    return Zero(policy, settings, ranks, device)


def _fsdp2(policy: Policy, settings: LearnerSettings, ranks: Ranks, device: torch.device) -> Sharding:
    from components.learner.sharding.fsdp2 import Fsdp2

    return Fsdp2(policy, settings, ranks, device)


SHARDINGS: dict[str, Callable[[Policy, LearnerSettings, Ranks, torch.device], Sharding]] = {
    "deepspeed": _zero,
    "fsdp2": _fsdp2,
}

__all__ = ["SHARDINGS", "Sharding"]
