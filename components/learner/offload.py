"""Moments of AdamW in host memory while another process needs the GPU.

They come back for the step itself, after the backward pass: at the peak of the activations they are not on the GPU.
What saves, copies or loads a state finds them where they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from components.learner.state.contents import MOMENTS


def offload(adamw: torch.optim.AdamW) -> None:
    """Drop the gradients, move the moments to host memory, and return what is free to the device. Nothing for
    parameters on a CPU."""
    freed = False
    for parameter, state in _states(adamw):
        if parameter.device.type != "cpu":
            parameter.grad, freed = None, True
            state |= {name: on_host(state[name]) for name in MOMENTS if name in state}
    if freed:
        torch.cuda.empty_cache()  # PyTorch keeps freed memory, which no other process could then use


def fetch(adamw: torch.optim.AdamW) -> None:
    """Bring the moments to where their parameters are; nothing where they are there."""
    for parameter, state in _states(adamw):
        for name in MOMENTS:
            if name in state and state[name].device != parameter.device:
                state[name] = state[name].to(parameter.device, non_blocking=True)


def on_host(moment: Tensor) -> Tensor:
    """A copy in host memory; pinned where that is faster. A share of a DTensor stays one, which cannot be pinned."""
    if isinstance(moment, DTensor) or moment.device.type != "cuda":
        return moment.to("cpu")
    return torch.empty_like(moment, device="cpu", pin_memory=True).copy_(moment)


def _states(adamw: torch.optim.AdamW) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
    """Every parameter and what the optimizer keeps for it, which is nothing before the first step."""
    for group in adamw.param_groups:
        for parameter in group["params"]:
            yield parameter, adamw.state.get(parameter, {})
