"""AdamW as every trainer here uses it, and its learning-rate schedules.

The norm of a gradient is exact enough that it does not depend on how the gradient is spread. Moments can rest in host
memory while another process needs the GPU. They come back for the step itself, after the backward pass: at the peak of
the activations they are not on the GPU. What saves, copies or loads a state finds them where they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.nn import Parameter

from components.config.base import AdamWSettings
from components.learner.state import AdamWContents, State
from components.learner.state.contents import MOMENTS

ROW = 1024
"""Squares of so many elements are summed in fp32, their sums in fp64: as fast as fp32 alone, which is off by up to 1e-3
for tensors of some million elements on a CPU, and by 1e-8 at most of what fp64 finds."""
PER_TENSOR = 64
"""Elements of each tensor that are looked at, evenly spread."""


class ClippedAdamW:
    """AdamW on named parameters, with gradient clipping. A gradient that is not finite changes nothing."""

    def __init__(self, parameters: Mapping[str, Parameter], settings: AdamWSettings) -> None:
        self._parameters, self._grad_clip = dict(parameters), settings.grad_clip
        self._steadiness = Steadiness(self._parameters, settings.weight_decay)
        self._adamw = torch.optim.AdamW(
            self._parameters.values(),
            lr=settings.lr,
            betas=settings.betas,
            weight_decay=settings.weight_decay,
            fused=True,  # one pass over memory instead of a dozen
        )
        self.state = State(AdamWContents(self._parameters, self._adamw))
        """Weights and moments, to save and to copy; `load` reads them."""

    def zero_grad(self) -> None:
        """Forget the gradients of the update before."""
        self._adamw.zero_grad(set_to_none=True)

    def step(self, lr: float, limit: float = math.inf) -> float:
        """One update at this learning rate; returns the gradient's norm before clipping.

        Where the norm is not finite, or above ``limit``, neither weights nor moments have changed.
        """
        gradients = [p.grad for p in self._parameters.values() if p.grad is not None]
        norm, before = math.sqrt(sum_of_squares(gradients).item()), self._steadiness.before(lr)
        if accepted(norm, limit):
            clip(gradients, norm, self._grad_clip)
            for group in self._adamw.param_groups:
                group["lr"] = lr
            fetch(self._adamw)
            self._adamw.step()
            self._steadiness.after(before, lr)
        else:
            self._steadiness.kept(before)
        return norm

    def rest(self) -> None:
        """Drop the gradients and keep the moments in host memory until the next step; nothing on a CPU."""
        offload(self._adamw)

    def trace(self) -> dict[str, float]:
        """Signals: what the updates since the last call did to a sample of the weights, and the settings in force."""
        (group, *_), (moved, largest, still) = self._adamw.param_groups, self._steadiness.read()
        return {
            "weights_moved": float(moved),
            "weights_still": float(still),
            "update_largest": largest,
            "grad_clip": self._grad_clip,
            "beta_first": group["betas"][0],
            "beta_second": group["betas"][1],
            "weight_decay": group["weight_decay"],
        }

    @property
    def steps(self) -> float | None:
        """Updates behind the moments; None before the first."""
        return next((float(state["step"]) for state in self._adamw.state.values() if "step" in state), None)

    def load(self, folder: Path) -> None:
        """Read what ``state`` wrote.

        Raises:
            InputError, ValueError: a file is missing or damaged, or it is another model's; nothing has changed.
        """
        self.state.check(folder)
        self.state.load(folder)
        self._steadiness.forget()


def accepted(norm: float, limit: float) -> bool:
    """Whether a gradient of this norm may change anything."""
    return math.isfinite(norm) and norm <= limit


def warmup_then_constant(update: int, warmup: int) -> float:
    """Factor of the ``update``-th update, counted from 1: linear to 1 over ``warmup`` updates, then 1."""
    return min(1.0, update / max(1, warmup))


def warmup_then_cosine(step: int, warmup: int, steps: int) -> float:
    """Factor of a step, counted from 0: linear to 1 over ``warmup`` steps, then a cosine to 0 at ``steps``."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def sum_of_squares(gradients: Sequence[Tensor]) -> Tensor:
    """Of all elements of all tensors; fp64, no dimension."""
    if not gradients:
        return torch.zeros((), dtype=torch.float64)
    return torch.cat([norms for gradient in gradients for norms in _norms(gradient.flatten())]).double().square().sum()


def _norms(flat: Tensor) -> tuple[Tensor, Tensor]:
    """Norms of a tensor's whole rows, and of what is left of it."""
    whole, dtype = len(flat) - len(flat) % ROW, torch.promote_types(flat.dtype, torch.float32)
    rows = torch.linalg.vector_norm(flat[:whole].view(-1, ROW), dim=1, dtype=dtype)
    return rows, torch.linalg.vector_norm(flat[whole:], dtype=dtype)[None]


def clip(gradients: Sequence[Tensor], norm: float, limit: float) -> None:
    """Scale a gradient of this norm down to ``limit``, in place, by the rule of ``torch.nn.utils.clip_grad_norm_``."""
    scale = limit / (norm + 1e-6)
    if scale < 1:
        for gradient in gradients:
            gradient.mul_(scale)


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


class Steadiness:
    """What an optimizer does to a sample of the weights: nothing between its updates, and in one no more than it can.
    Looks at the same elements before and after every update; costs a millisecond, not a copy of the model.

    Since they were last read, ``moved`` is how many tensors were not as the update before had left them, ``largest``
    the largest change of an element in an update, as a multiple of its learning rate, and ``still`` how many tensors
    an update did not change, at most, of those that had a gradient there and a rate that their rounding can show.
    """

    def __init__(self, parameters: Mapping[str, Tensor], weight_decay: float = 0.0) -> None:
        self._parameters, self._decay = list(parameters.values()), weight_decay
        self._places = [spread(p.numel()) for p in self._parameters]
        self._rounding = [torch.finfo(p.dtype).eps for p in self._parameters]
        self._pulled = [False] * len(self._parameters)
        self._left: list[Tensor] | None = None  # by the update before
        self.moved, self.largest, self.still = 0, 0.0, 0

    def before(self, lr: float) -> list[Tensor]:
        """Compare with what the update before left; returns the elements as they are now."""
        now = self._elements()
        self._pulled = [self._is_pulled(*one, lr) for one in zip(self._parameters, self._places, now, strict=True)]
        old = now if self._left is None else self._left
        self.moved += sum(not torch.equal(one, other) for one, other in zip(now, old, strict=True))
        return now

    def after(self, before: Sequence[Tensor], lr: float) -> None:
        """Measure the update that was made since ``before``; weight decay and rounding are no part of it."""
        now, kept = self._elements(), 1 - lr * self._decay
        changes = [
            ((one - kept * other).abs() - eps * other.abs()).max().item()
            for one, other, eps in zip(now, before, self._rounding, strict=True)
        ]
        self.largest = max(self.largest, max(changes) / lr if lr else 0.0)
        same = (torch.equal(one, other) for one, other in zip(now, before, strict=True))
        self.still = max(self.still, sum(kept and pulled for kept, pulled in zip(same, self._pulled, strict=True)))
        self._left = now

    def kept(self, before: list[Tensor]) -> None:
        """No update was made."""
        self._left = before

    def read(self) -> tuple[int, float, int]:
        """``moved``, ``largest`` and ``still``, which begin again."""
        found = self.moved, self.largest, self.still
        self.moved, self.largest, self.still = 0, 0.0, 0
        return found

    def forget(self) -> None:
        """The weights have been loaded."""
        self._left = None

    def _is_pulled(self, parameter: Tensor, places: Tensor, now: Tensor, lr: float) -> bool:
        """Whether an update must show: an element has a gradient, and a tenth of the rate is no rounding error."""
        if parameter.grad is None:
            return False
        gradient = parameter.grad.detach().reshape(-1)[places.to(parameter.device)].cpu()
        shown = 0.1 * lr > torch.finfo(parameter.dtype).eps * now.abs()
        return bool((shown & (gradient != 0)).any())

    def _elements(self) -> list[Tensor]:
        with torch.no_grad():
            pairs = zip(self._parameters, self._places, strict=True)
            return [p.detach().reshape(-1)[places.to(p.device)].float().cpu() for p, places in pairs]


def spread(size: int) -> Tensor:
    """Places of at most `PER_TENSOR` elements, from the first to the last; in whole numbers, as fp32 cannot
    count the elements of a large tensor."""
    count = min(PER_TENSOR, size)
    return torch.arange(count) * (size - 1) // max(1, count - 1)
