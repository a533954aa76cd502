"""AdamW as every trainer here uses it, and its learning-rate schedules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import torch
from torch.nn import Parameter

from components.config.base import AdamWSettings
from components.learner.clipping import clip, sum_of_squares
from components.learner.offload import fetch, offload
from components.learner.state import AdamWContents, State
from components.learner.steadiness import Steadiness


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
