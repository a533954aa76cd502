"""DeepSpeed ZeRO, stages 1 to 3 (1910.02054).

DeepSpeed steps as soon as it knows the norm of a gradient, and throws an update away when that norm is not a number. So
a gradient that may not be used is spoiled first, and everything that belongs to it goes with it.
"""

from __future__ import annotations

import math
from typing import Any

import deepspeed
import torch
from deepspeed import utils
from torch import Tensor, nn
from torch.nn import Parameter

from components.config.training import LearnerSettings
from components.device import computes_in
from components.learner.batch import Batch
from components.learner.optimizer import accepted
from components.learner.scoring import PREFIX, Pass, ScoringModule
from components.learner.sharding.source import Source
from components.learner.sharding.spread import Spread, trained
from components.learner.sharding.zero_pieces import ZeroContents, pieces_of
from components.learner.state import State
from components.policy import Policy, TokenStats
from components.policy.outline import replaced


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
