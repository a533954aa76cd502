"""What every sharding over several ranks has in common: its weights are gathered parameter by parameter."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping

from torch import Tensor, nn
from torch.nn import Parameter

from components.learner.ranks import Ranks
from components.learner.sharding.base import Sharding


class Spread(Sharding):
    """Weights, moments or both are spread over ranks."""

    ranks: Ranks
    parameters: Mapping[str, Parameter]
    """What is trained."""

    @abstractmethod
    def gather(self, name: str) -> Tensor:
        """The whole fp32 weight; collective, on every rank."""

    def learned(self) -> Iterator[tuple[str, Tensor]]:
        for name in self.parameters:
            yield name, self.gather(name)


def trained(module: nn.Module) -> list[tuple[str, Parameter]]:
    """Parameters that have a gradient, by name; with an adapter the others are the base."""
    return [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
