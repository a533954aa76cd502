"""What every sharding over several ranks has in common: its weights are gathered parameter by parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from components.learner.ranks import Ranks
from components.learner.sharding.base import Sharding


class Spread(Sharding):
    """Weights, moments or both are spread over ranks."""

    ranks: Ranks
    parameters: Mapping[str, Parameter]
    """What is trained."""

    def broken(self) -> int:
        flags = torch.tensor([float(not own.isfinite().all()) for own in map(local, self.parameters.values())])
        return int(self.ranks.largest(flags).sum())


def local(parameter: Any) -> Tensor:
    """What this rank holds of a parameter: all of it, its share, or nothing."""
    if hasattr(parameter, "ds_tensor"):
        return parameter.ds_tensor  # type: ignore[no-any-return]
    return parameter.to_local() if hasattr(parameter, "to_local") else parameter.detach()  # type: ignore[no-any-return]


def trained(module: nn.Module) -> list[tuple[str, Parameter]]:
    """Parameters that have a gradient, by name; with an adapter the others are the base."""
    return [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
