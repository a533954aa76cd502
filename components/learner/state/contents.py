"""What a state consists of: weights by name, and of each that has been updated its moments and number of updates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import Parameter

from components.learner.state.pieces import Piece

MOMENTS = ("exp_avg", "exp_avg_sq")
"""What AdamW keeps for every element of a parameter."""
WEIGHT, STEP = "weight/", "optimizer/step/"
"""Before the name of a parameter in a state."""


class Contents(ABC):
    """This rank's part of the weights and moments. Nothing here is collective."""

    shapes: Mapping[str, torch.Size]
    """Whole shapes of what is trained, by the names that the parameters have in the model."""
    as_one: ClassVar[bool] = False
    """Whether all parameters have made the same number of updates."""

    @abstractmethod
    def piece(self, name: str, moment: str | None = None) -> Piece:
        """This rank's part of a weight, or of one of its moments; a view."""

    @abstractmethod
    def updates(self) -> Mapping[str, float]:
        """Updates of each parameter that has moments."""

    @abstractmethod
    def reset(self, updates: Mapping[str, float]) -> None:
        """Moments of 0 after so many updates; those that are not named become as before the first."""

    def pieces(self) -> dict[str, Piece]:
        """All of it by name, but for the numbers of updates."""
        found = {f"{WEIGHT}{name}": self.piece(name) for name in self.shapes}
        for name in self.updates():
            found |= {f"optimizer/{moment}/{name}": self.piece(name, moment) for moment in MOMENTS}
        return found


class AdamWContents(Contents):
    """Parameters and an optimizer of PyTorch; the parameters may be DTensors."""

    def __init__(self, parameters: Mapping[str, Parameter], optimizer: torch.optim.AdamW) -> None:
        self._parameters, self._optimizer = parameters, optimizer
        self.shapes = {name: parameter.shape for name, parameter in parameters.items()}

    def piece(self, name: str, moment: str | None = None) -> Piece:
        parameter = self._parameters[name]
        return Piece.of(parameter if moment is None else self._optimizer.state[parameter][moment])

    def updates(self) -> dict[str, float]:
        states = {name: self._optimizer.state.get(parameter) for name, parameter in self._parameters.items()}
        return {name: float(state["step"]) for name, state in states.items() if state}

    def reset(self, updates: Mapping[str, float]) -> None:
        self._optimizer.state.clear()
        fused = self._optimizer.param_groups[0]["fused"]
        for name, count in updates.items():
            parameter = self._parameters[name]
            step = torch.tensor(count, dtype=torch.float32, device=parameter.device if fused else None)
            moments: dict[str, Tensor] = {moment: torch.zeros_like(parameter.detach()) for moment in MOMENTS}
            self._optimizer.state[parameter] = {"step": step, **moments}
