"""Log-probabilities of tokens straight from hidden states: the output layer and what is read of its logits, as one
operation.

Logits are made and read in fp32 whatever the precision: a log-probability is a small difference of large ones. What is
kept for the way back are probabilities, in the precision of the products they go into, and only where they take no more
memory than the logits that may be held at a time. Elsewhere logits are made in pieces, and made again on the way back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from components.policy.lean.products import product, weight_gradient

CACHED = 2**18
"""Logits that are read at a time, in several passes: 1 MiB, which stays in a core's cache."""
LEAST = -1e4
"""Log-probabilities are clamped to it for the entropy: 0 x -inf of an impossible token would be NaN, and far above it
exp is 0 already."""


def scored(
    hidden: Tensor,
    targets: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    temperature: float,
    logits_at_once: int,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """Log-probability, with a gradient, and entropy, without one, of ``targets [N]``; both ``[N]`` in nats.

    Args:
        hidden: ``[N, H]``, what they are predicted from.
        weight: Of the output layer, ``[V, H]``.
        dtype: Precision of the products on the way back.
    """
    found: tuple[Tensor, Tensor] = _Scored.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, targets, temperature, logits_at_once, dtype
    )
    return found


class _Scored(Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        temperature: float,
        at_once: int,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        learned, numbers = any(ctx.needs_input_grad), len(targets) * len(weight)
        keep = learned and numbers * dtype.itemsize <= at_once * torch.float32.itemsize
        logp, normaliser, entropy = (hidden.new_empty(len(targets)) for _ in range(3))
        kept = []
        ctx.size = max(1, at_once // len(weight))
        for piece in _pieces(len(targets), ctx.size):
            logits = product(hidden[piece], weight, bias)
            logp[piece], normaliser[piece], entropy[piece] = _read(logits, targets[piece], temperature, keep)
            if keep:
                kept.append(logits.to(dtype))
        ctx.save_for_backward(hidden, weight, bias, targets, logp, normaliser)
        ctx.kept, ctx.temperature, ctx.dtype = kept, temperature, dtype
        ctx.mark_non_differentiable(entropy)
        return logp, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, logp, normaliser = ctx.saved_tensors
        kept, ctx.kept = ctx.kept, []  # they are written into
        slope, low = gradients[0] / ctx.temperature, weight.to(ctx.dtype)
        of_targets = slope * -torch.expm1(logp)
        of_hidden, of_weight, of_bias = torch.empty_like(hidden), None, None
        for number, piece in enumerate(_pieces(len(targets), ctx.size)):
            if kept:
                of_logits, kept[number] = kept[number], None
            else:
                of_logits = _probabilities(product(hidden[piece], weight, bias), normaliser[piece], ctx.temperature)
                of_logits = of_logits.to(ctx.dtype)
            of_logits.mul_(-slope[piece, None])
            of_logits.scatter_(-1, targets[piece, None], of_targets[piece, None].to(ctx.dtype))
            of_hidden[piece] = product(of_logits, low.T)
            if ctx.needs_input_grad[1]:
                own = weight_gradient(of_logits, hidden[piece].to(ctx.dtype))
                of_weight = own.to(weight.dtype) if of_weight is None else of_weight.add_(own)
            if ctx.needs_input_grad[2]:
                own = of_logits.sum(0, dtype=bias.dtype)
                of_bias = own if of_bias is None else of_bias.add_(own)
        return of_hidden, of_weight, of_bias, None, None, None, None


def _pieces(rows: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def _read(logits: Tensor, targets: Tensor, temperature: float, keep: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities of ``targets [N]``, normalisers and entropies, ``[N]`` each. With ``keep`` probabilities take
    the place of ``logits [N, V]``; without it nothing that is of use."""
    found = []
    for piece in _pieces(len(logits), max(1, CACHED // logits.shape[1])):
        below, ids = logits[piece], targets[piece, None]
        if temperature != 1:
            below.div_(temperature)
        largest = below.amax(-1, keepdim=True)
        chosen = below.sub_(largest).gather(-1, ids)
        weights = below.exp()
        total = weights.sum(-1, keepdim=True)
        spread = below.clamp_(min=LEAST).mul_(weights).sum(-1, keepdim=True) / total
        if keep:
            torch.div(weights, total, out=below)
        normaliser = total.log()
        found.append(torch.cat([chosen - normaliser, largest + normaliser, normaliser - spread], dim=1))
    logp, normalisers, entropy = torch.cat(found).unbind(1)
    return logp, normalisers, entropy


def _probabilities(logits: Tensor, normaliser: Tensor, temperature: float) -> Tensor:
    """In the place of ``logits [N, V]``."""
    for piece in _pieces(len(logits), max(1, CACHED // logits.shape[1])):
        if temperature != 1:
            logits[piece].div_(temperature)
        logits[piece].sub_(normaliser[piece, None]).exp_()
    return logits
