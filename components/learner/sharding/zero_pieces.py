"""This rank's flat fp32 pieces of the weights in DeepSpeed's optimizers, which differ from stage to stage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from deepspeed import utils
from deepspeed.runtime.bf16_optimizer import BF16_Optimizer
from torch import Tensor, distributed
from torch.nn import Parameter

from components.learner.optimizer import sum_of_squares
from components.learner.state.contents import MOMENTS, Contents
from components.learner.state.pieces import Piece


class Pieces:
    """This rank's flat fp32 pieces in one of DeepSpeed's optimizers (stages 1 and 2), with AdamW's state for them.

    DeepSpeed makes that state at the first update only; here it is there from the beginning, all 0, which is the same.
    """

    def __init__(self, optimizer: Any, adamw: torch.optim.AdamW) -> None:
        self.optimizer, self.adamw = optimizer, adamw
        for piece in self.weights():
            moments = {moment: torch.zeros_like(piece.detach()) for moment in MOMENTS}
            adamw.state[piece] = {"step": torch.zeros((), dtype=torch.float32), **moments}
        self.link()

    def weights(self) -> Iterable[Tensor]:
        pieces: list[Tensor] = self.optimizer.single_partition_of_fp32_groups
        return pieces

    def link(self) -> None:
        """Let DeepSpeed find the moments of a parameter."""
        self.optimizer._lazy_init_hp_params_optimizer_state()

    def norm(self) -> float:
        """Of the whole gradient, before clipping; infinite where it has a NaN."""
        return valid(self.optimizer.scaled_global_norm())

    def gradients(self) -> Iterable[Tensor]:
        return [gradient for group in self.optimizer.averaged_gradients.values() for gradient in group or ()]

    def refresh(self) -> None:
        """Give the weights of the forward pass the values of the pieces."""
        self.optimizer.update_lp_params()

    def piece(self, parameter: Any, moment: str | None) -> tuple[int, Tensor]:
        """This rank's elements of a weight, or of one of its moments, and the number of the first; a view."""
        held = parameter._hp_mapping
        if held is None:
            return 0, torch.empty(0, device=parameter.device)
        return held.lp_fragment_address.start, held.get_hp_fragment(moment).detach()

    @property
    def steps(self) -> float | None:
        return max((float(state["step"]) for state in self.adamw.state.values()), default=0.0) or None

    def reset(self, steps: float) -> None:
        """Moments of 0 after so many updates."""
        for state in self.adamw.state.values():
            state["step"].fill_(steps)
            for moment in MOMENTS:
                state[moment].zero_()


class Bf16Pieces(Pieces):
    """The optimizer that DeepSpeed takes for stage 1 with bf16 weights and fp32 gradients."""

    def weights(self) -> Iterable[Tensor]:
        pieces: list[Tensor] = self.optimizer.fp32_groups_flat_partition
        return pieces

    def norm(self) -> float:
        return math.sqrt(float(sum_of_squares(self.gradients())))

    def gradients(self) -> list[Tensor]:
        found: list[Tensor] = self.optimizer.get_grads_for_norm(for_clipping=True)
        return found


class Stage3Pieces(Pieces):
    """Weights spread over the ranks."""

    def weights(self) -> Iterable[Tensor]:
        pieces: list[Tensor] = self.optimizer.fp32_partitioned_groups_flat
        return pieces

    def link(self) -> None:
        """It looks into AdamW itself."""

    def norm(self) -> float:
        norms = [valid(norm) for norm in self.optimizer._get_norm_groups()]
        return math.sqrt(sum(norm * norm for norm in norms))

    def piece(self, parameter: Any, moment: str | None) -> tuple[int, Tensor]:
        if moment is None:
            held = utils.safe_get_local_fp32_param(parameter)
        else:
            held = utils.safe_get_local_optimizer_state(parameter, moment)
        start = min(len(held) * distributed.get_rank(), parameter.ds_numel)
        return start, held.detach()[: parameter.ds_numel - start]  # behind it is padding

    def refresh(self) -> None:
        self.optimizer._partition_all_parameters()
        for group in range(len(self.optimizer.fp16_groups)):
            self.optimizer._reassign_or_swap_out_partitioned_parameters(group)
        self.optimizer._post_step(set())


class ZeroContents(Contents):
    """The pieces of all parameters."""

    as_one = True

    def __init__(self, parameters: Mapping[str, Parameter], shapes: Mapping[str, torch.Size], pieces: Pieces) -> None:
        self._parameters, self.shapes, self._pieces = parameters, shapes, pieces

    def piece(self, name: str, moment: str | None = None) -> Piece:
        start, values = self._pieces.piece(self._parameters[name], moment)
        return Piece(values, start, self.shapes[name])

    def updates(self) -> dict[str, float]:
        steps = self._pieces.steps
        return {} if steps is None else dict.fromkeys(self.shapes, steps)

    def reset(self, updates: Mapping[str, float]) -> None:
        self._pieces.reset(max(updates.values(), default=0.0))


def pieces_of(optimizer: Any, adamw: torch.optim.AdamW, stage: int) -> Pieces:
    """What holds this rank's pieces."""
    if isinstance(optimizer, BF16_Optimizer):
        return Bf16Pieces(optimizer, adamw)
    return (Stage3Pieces if stage == 3 else Pieces)(optimizer, adamw)


def valid(norm: Tensor) -> float:
    """DeepSpeed's norm, which is -1 for one that is not finite."""
    return float(norm) if float(norm) >= 0 else math.inf
