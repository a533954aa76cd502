"""What the registry of ratio families holds of each, and the contract that all of them meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from components.catalog import Declaration
from components.objectives.tokens import TokenInputs, TokenLoss

ADVANTAGES = (-2.0, -0.5, 0.0, 1.0)
TOLERANCE = 1e-4


@dataclass(frozen=True)
class RatioEntry(Declaration):
    """``call(logp [B, R], inputs, settings)`` returns a `TokenLoss`, to be minimised.

    Attributes:
        without_advantage: the loss has a term that no advantage multiplies, so that a token without advantage has a
            gradient, too.
        corrects_sampler: the ratio is relative to the sampler, so a correction would count the same gap twice.
    """

    without_advantage: bool = False
    corrects_sampler: bool = False

    def problems(self, settings: Any) -> list[str]:
        """On policy the gradient is that of -A log pi; no advantage, no gradient; finite far off policy."""
        return list(_problems(self, settings))


def _problems(entry: RatioEntry, settings: Any) -> Iterator[str]:
    on_policy = _inputs(torch.full((len(ADVANTAGES), 1), -2.0))
    logp = on_policy.old_logp.clone().requires_grad_()
    result = entry.call(logp, on_policy, settings)
    if not isinstance(result, TokenLoss) or any(part.shape != logp.shape for part in result):
        yield f"it must return a TokenLoss of arrays of the shape of logp, {list(logp.shape)} here"
        return
    gradient, expected = _gradient(result.loss, logp), -on_policy.advantages
    if not torch.allclose(gradient, expected, atol=TOLERANCE):
        yield f"on policy the gradient is {_shown(gradient)} for advantages {_shown(-expected)}, not {_shown(expected)}"
    moved = (on_policy.old_logp + torch.tensor([[0.5], [-0.5], [1.0], [-1.0]])).requires_grad_()
    flat = entry.call(moved, on_policy._replace(advantages=torch.zeros_like(moved)), settings)
    if bool(_gradient(flat.loss, moved).any()) != entry.without_advantage:
        yield "without an advantage there must be a gradient if, and only if, without_advantage is declared"
    for far in (-60.0, 60.0):
        logp = (on_policy.old_logp + far).requires_grad_()
        loss = entry.call(logp, on_policy, settings).loss
        if not (loss.isfinite().all() and _gradient(loss, logp).isfinite().all()):
            yield f"loss or gradient is not finite where log-probabilities have moved by {far:+g} nats"


def _inputs(old: Tensor) -> TokenInputs:
    """Completions of one token each, for which families per token and per sequence agree."""
    return TokenInputs(
        mask=torch.ones_like(old, dtype=torch.bool),
        weights=torch.full_like(old, 1 / len(old)),
        advantages=torch.tensor(ADVANTAGES)[:, None],
        rollout_logp=old,
        old_logp=old,
    )


def _gradient(loss: Tensor, logp: Tensor) -> Tensor:
    if not loss.requires_grad:
        return torch.zeros_like(logp)
    (gradient,) = torch.autograd.grad(loss.sum(), logp, allow_unused=True)
    return torch.zeros_like(logp) if gradient is None else gradient


def _shown(values: Tensor) -> str:
    return ", ".join(f"{value:.3g}" for value in values.flatten().tolist())
