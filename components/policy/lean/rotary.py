"""Rotary positions (2104.09864): every head turned by its token's angles."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function


class Rotary(NamedTuple):
    """Cosines and sines, ``[positions, D / 2]``; or of the N tokens that are read, ``[N, 1, D / 2]``."""

    cos: Tensor
    sin: Tensor

    @classmethod
    @torch.no_grad()
    def first(cls, body: Any, head_dim: int, positions: int) -> Rotary:
        """Those of the first ``positions`` positions, as the ``body`` of a model turns heads of this size."""
        weight, half = body.embed_tokens.weight, head_dim // 2
        cos, sin = body.rotary_emb(weight[:1], torch.arange(positions, device=weight.device)[None])
        return cls(cos[0, :, :half].contiguous(), sin[0, :, :half].contiguous())

    def at(self, positions: Tensor) -> Rotary:
        """Those of the tokens at ``positions`` ``[N]``."""
        return Rotary(self.cos[positions][:, None], self.sin[positions][:, None])

    def turn(self, heads: Tensor) -> Tensor:
        """Every head of ``[N, heads, D]`` turned by its token's angles."""
        turned, half = torch.empty_like(heads), heads.shape[-1] // 2
        first, second = heads[..., :half], heads[..., half:]
        torch.mul(first, self.cos, out=turned[..., :half]).addcmul_(second, self.sin, value=-1)
        torch.mul(second, self.cos, out=turned[..., half:]).addcmul_(first, self.sin)
        return turned

    def back(self) -> Rotary:
        """The other way round."""
        return Rotary(self.cos, -self.sin)


def turned(heads: Tensor, rotary: Rotary) -> Tensor:
    """`Rotary.turn` with a gradient, which is turned back."""
    found: Tensor = _Turned.apply(heads, rotary)  # type: ignore[no-untyped-call]
    return found


class _Turned(Function):
    @staticmethod
    def forward(ctx: Any, heads: Tensor, rotary: Rotary) -> Tensor:
        ctx.rotary = rotary
        return rotary.turn(heads)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None]:
        return ctx.rotary.back().turn(gradients[0]), None
