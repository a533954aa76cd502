"""PyTorch's fully sharded data parallel, ``fully_shard`` (2304.11277): every rank holds a piece of everything."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import distribute_tensor

from components.config.training import LearnerSettings
from components.device import computes_in
from components.learner.activations import checkpointed_layers
from components.learner.batch import Batch
from components.learner.optimizer import accepted, clip, fetch, offload, sum_of_squares
from components.learner.scoring import PREFIX, Pass, ScoringModule
from components.learner.sharding.base import Spread, trained
from components.learner.sharding.source import Source, make_room
from components.learner.state import AdamWContents, State
from components.policy import Policy, TokenStats


class Fsdp2(Spread):
    """One group of weights per layer, gathered when the layer runs; the rest of the model is one more group."""

    def __init__(self, policy: Policy, settings: LearnerSettings, source: Source) -> None:
        ranks, device = source.ranks, source.device
        self.ranks, self.device = ranks, device
        self._module = ScoringModule(policy.model)
        mesh = init_device_mesh(device.type, (ranks.size,))
        self._outermost = spread_out(self._module, source, {"mesh": mesh, "mp_policy": precision(settings, device)})
        self.parameters = {name.removeprefix(PREFIX): p for name, p in trained(self._module)}
        self._grad_clip = settings.grad_clip
        self._adamw = torch.optim.AdamW(
            self.parameters.values(), lr=settings.lr, betas=settings.betas, weight_decay=settings.weight_decay
        )
        self.state = State(AdamWContents(self.parameters, self._adamw), ranks)

    def score(self, batch: Batch, how: Pass) -> TokenStats:
        return TokenStats(*self._module(batch, how))

    def zero_grad(self) -> None:
        self._adamw.zero_grad(set_to_none=True)

    def backward(self, loss: Tensor, last: bool) -> None:
        # It averages over the ranks. Every micro-batch is reduced at once: a rank keeps only its share of a gradient.
        (loss * self.ranks.size).backward()  # type: ignore[no-untyped-call]

    def step(self, lr: float, limit: float) -> float:
        spread: list[Any] = [p.grad for p in self.parameters.values() if p.grad is not None]
        gradients = [gradient.to_local() for gradient in spread]
        norm = math.sqrt(self.ranks.total(sum_of_squares(gradients)).item())
        if accepted(norm, limit):
            clip(gradients, norm, self._grad_clip)
            for group in self._adamw.param_groups:
                group["lr"] = lr
            fetch(self._adamw)
            self._adamw.step()
            self.refresh()
        return norm

    def rest(self) -> None:
        self.refresh()
        offload(self._adamw)

    @property
    def steps(self) -> float | None:
        state = self._adamw.state.get(next(iter(self.parameters.values())), {})
        return float(state["step"]) if state else None

    def whole(self, name: str) -> Tensor:
        held: Any = self.parameters[name]
        whole: Tensor = held.full_tensor()
        return whole.float()

    def refresh(self) -> None:
        # A pass without gradient leaves the outermost group gathered, and the next pass would read that again,
        # though the weights are others by then.
        self._outermost.reshard()


def spread_out(module: ScoringModule, source: Source, options: dict[str, Any]) -> Any:
    """Spread a module, whose parameters are on the meta device, over the ranks, and fill every rank's shares.
    Collective.

    Args:
        options: of `fully_shard`.

    Returns:
        The module as FSDP2 wraps it.
    """
    for layer in checkpointed_layers(module.model):
        fully_shard(layer, **options)
    outermost = fully_shard(module, **options)
    make_room(module, source.device)
    for name, parameter in module.named_parameters():
        put(source.whole(name.removeprefix(PREFIX), parameter.shape), parameter)
    source.fill_buffers(module, PREFIX)
    return outermost


def put(value: Tensor, held: Any) -> None:
    """Take this rank's share of a whole tensor, which is rank 0's; collective."""
    share: Any = distribute_tensor(value, held.device_mesh, held.placements)
    with torch.no_grad():
        held.to_local().copy_(share.to_local())


def precision(settings: LearnerSettings, device: torch.device) -> MixedPrecisionPolicy:
    if computes_in(settings.compute_dtype, device) == torch.float32:
        return MixedPrecisionPolicy()
    return MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
