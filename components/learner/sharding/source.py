"""Where the ranks get the weights that they begin with: rank 0 has them, and gives them out one tensor at a time.

Ranks build the model on the meta device, which takes no memory, and make room for their shares only. So no rank holds
more than its share and one whole tensor, besides the policy that rank 0 has for the loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, distributed, nn

from components.learner.ranks import Ranks


@dataclass(frozen=True)
class Source:
    """``state`` are the parameters and persistent buffers of rank 0's policy, by name; empty on the other ranks."""

    ranks: Ranks
    device: torch.device
    state: Mapping[str, Tensor] = field(default_factory=dict)

    def whole(self, name: str, shape: torch.Size) -> Tensor:
        """A whole parameter, fp32 on the device of this rank; its values mean something on rank 0 alone."""
        if self.ranks.rank == 0:
            return self.state[name].detach().to(self.device, torch.float32)
        return torch.empty(shape, device=self.device)

    def copied(self, name: str, shape: torch.Size) -> Tensor:
        """A whole parameter in memory of its own, the same on every rank; collective."""
        value = self.whole(name, shape).clone()
        if self.ranks.size > 1:
            distributed.broadcast(value, src=0)
        return value

    def fill_buffers(self, module: nn.Module, prefix: str) -> None:
        """Give the persistent buffers of a module the values of rank 0; collective. The others follow from the
        model's configuration."""
        own = dict(module.named_buffers())
        for name in sorted(own.keys() & module.state_dict().keys()):
            value = own[name]
            if self.ranks.rank == 0:
                value.copy_(self.state[name.removeprefix(prefix)])
            if self.ranks.size > 1:
                distributed.broadcast(value, src=0)


def make_room(module: nn.Module, device: torch.device) -> None:
    """Replace parameters on the meta device by uninitialised ones on ``device``; buffers keep their values. Ties of a
    module that `fully_shard` has spread stay, those of another one break."""
    buffers = [
        (owner, name, buffer.to(device))
        for owner in module.modules()
        for name, buffer in owner._buffers.items()
        if buffer is not None
    ]
    module.to_empty(device=device)
    for owner, name, buffer in buffers:
        owner._buffers[name] = buffer
