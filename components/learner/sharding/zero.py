"""DeepSpeed ZeRO, stages 1 to 3 (1910.02054).

DeepSpeed steps as soon as it knows the norm of a gradient, and throws an update away when that norm is not a number. So
a gradient that may not be used is spoiled first, and everything that belongs to it goes with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import deepspeed
import torch
from deepspeed import utils
from deepspeed.runtime.bf16_optimizer import BF16_Optimizer
from torch import Tensor, distributed, nn
from torch.nn import Parameter

from components.config.training import LearnerSettings
from components.device import computes_in
from components.learner.batch import Batch
from components.learner.optimizer import accepted, sum_of_squares
from components.learner.scoring import PREFIX, Pass, ScoringModule
from components.learner.sharding.base import Spread, trained
from components.learner.sharding.source import Source
from components.learner.state import State
from components.learner.state.contents import MOMENTS, Contents, Piece
from components.policy import Policy, TokenStats
from components.policy.outline import replaced


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


class Zero(Spread):
    """AdamW on flat fp32 pieces of the weights, one a rank; stage 2 spreads gradients too, stage 3 the weights."""

    def __init__(self, policy: Policy, settings: LearnerSettings, source: Source) -> None:
        self.ranks, self.device = source.ranks, source.device
        module = ScoringModule(policy.model)
        self._shapes = {name.removeprefix(PREFIX): p.shape for name, p in trained(module)}
        # Sums through shared memory, for CPUs alone, are compiled at the first use: a minute and a C++ compiler.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
        config = engine_config(settings, source.device)
        fill(module, source, config)
        adamw = torch.optim.AdamW(
            [p for _, p in trained(module)], lr=settings.lr, betas=settings.betas, weight_decay=settings.weight_decay
        )
        self._engine, *_ = deepspeed.initialize(model=module, optimizer=adamw, config=config, dist_init_required=False)
        self.parameters = {name.removeprefix(PREFIX): p for name, p in trained(module)}
        self._stage = settings.zero.stage
        self._pieces = pieces_of(self._engine.optimizer, adamw, self._stage)
        self.state = State(ZeroContents(self.parameters, self._shapes, self._pieces), self.ranks)

    def score(self, batch: Batch, how: Pass) -> TokenStats:
        if self._stage == 3:
            # Every use of the output layer gathers it, so all ranks use it as often as the one with most tokens.
            most = self.ranks.largest(batch.response_mask.sum().clamp(min=1))
            how = how._replace(at_least=int(most))
        return TokenStats(*self._engine(batch, how))

    def zero_grad(self) -> None:
        """Nothing to do: a step takes the gradients, whether it uses them or not."""

    def backward(self, loss: Tensor, last: bool) -> None:
        self._engine.set_gradient_accumulation_boundary(last)
        self._engine.backward(loss * self.ranks.size)  # it averages over the ranks

    def step(self, lr: float, limit: float) -> float:
        norm = self._pieces.norm()
        if not accepted(norm, limit):
            for gradient in self._pieces.gradients():
                gradient.fill_(math.nan)
        for group in self._pieces.adamw.param_groups:
            group["lr"] = lr
        self._engine.step()
        return norm

    @property
    def steps(self) -> float | None:
        return self._pieces.steps

    def whole(self, name: str) -> Tensor:
        found: Tensor = utils.safe_get_full_fp32_param(self.parameters[name])
        return found.view(self._shapes[name])

    def refresh(self) -> None:
        self._pieces.refresh()


def fill(module: ScoringModule, source: Source, config: dict[str, Any]) -> None:
    """Give the module's parameters, which are on the meta device, their values. With stage 3 each is spread over the
    ranks as soon as it is there; DeepSpeed takes such a parameter to have the precision of the passes already."""
    spreads = config["zero_optimization"]["stage"] == 3
    dtype = torch.bfloat16 if spreads and config["bf16"]["enabled"] else torch.float32

    def value(name: str, parameter: Parameter) -> Tensor:
        return source.copied(name.removeprefix(PREFIX), parameter.shape).to(dtype)

    def spread_out(parameter: Parameter) -> None:
        if spreads:
            deepspeed.zero.Init(module=nn.ParameterList([parameter]), config_dict_or_path=config)

    replaced(module, value, spread_out)
    module.to(source.device)
    source.fill_buffers(module, PREFIX)


def engine_config(settings: LearnerSettings, device: torch.device) -> dict[str, Any]:
    """DeepSpeed's configuration. Sums of gradients are fp32, also between ranks."""
    half = computes_in(settings.compute_dtype, device) == torch.bfloat16
    return {
        "train_micro_batch_size_per_gpu": 1,  # unused: batches are not DeepSpeed's to make
        "gradient_clipping": settings.grad_clip,
        "zero_optimization": {"stage": settings.zero.stage},
        "zero_allow_untested_optimizer": True,
        "bf16": {"enabled": half},
        "data_types": {"grad_accum_dtype": "fp32"},
        "communication_data_type": "fp32",
        "steps_per_print": 2**62,
    }
