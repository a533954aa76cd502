"""A lean forward pass for dense decoders, over the tensors of the model itself.

Pre-norm blocks of grouped-query attention with rotary positions and a gated MLP, as Llama, Qwen2 and Qwen3 have them.
`dense_model` says which models it is taken for. Transformers computes the same in several times as many operations,
most of which copy. Here the projections that share an input are one matrix product, and nothing is allocated that can
be written in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from components.policy.lean.products import product
from components.policy.lean.rotary import Rotary

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Layer, queries ``[N, heads, D]``, keys and values ``[N, kv_heads, D]`` -> what they attend to, ``[N, heads * D]``."""


class Layer(NamedTuple):
    """One block: fused weights ``[out, in]`` with their biases, and the modules of the rest."""

    before: nn.Module
    qkv: Tensor
    qkv_bias: Tensor | None
    q_norm: nn.Module | None
    k_norm: nn.Module | None
    out: nn.Linear
    after: nn.Module
    gate_up: Tensor
    gate_up_bias: Tensor | None
    down: nn.Linear


class DenseModel:
    """The forward pass. The model's projections become views of the fused tensors, so that weights loaded into it are
    computed with at once and nothing is held twice."""

    def __init__(self, model: PreTrainedModel) -> None:
        config, body = model.config, model.base_model
        attention = body.layers[0].self_attn
        self.heads, self.kv_heads = int(config.num_attention_heads), int(config.num_key_value_heads)
        self.head_dim, self.scale = int(attention.head_dim), float(attention.scaling)
        self.embedding, self._rotary, self._norm = body.embed_tokens, body.rotary_emb, body.norm
        self._head = model.get_output_embeddings()
        self.layers = [_layer(block) for block in body.layers]

    @property
    def dtype(self) -> torch.dtype:
        """The precision it computes in."""
        dtype: torch.dtype = self.embedding.weight.dtype
        return dtype

    def rotary(self, positions: int) -> Rotary:
        """Cosines and sines of the first ``positions`` positions."""
        cos, sin = self._rotary(self.embedding.weight[:1], torch.arange(positions)[None])
        half = self.head_dim // 2
        return Rotary(cos[0, :, :half].contiguous(), sin[0, :, :half].contiguous())

    def forward(self, hidden: Tensor, rotary: Rotary, attend: Attend) -> Tensor:
        """Hidden states ``[N, H]`` of N tokens from their embeddings, which are overwritten."""
        for number, layer in enumerate(self.layers):
            queries, keys, values = self._project(layer, hidden, rotary)
            _add_linear(hidden, attend(number, queries, keys, values), layer.out)
            _add_linear(hidden, _gated(layer, hidden), layer.down)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits ``[N, V]`` of hidden states ``[N, H]``."""
        normed, head = _normed(self._norm, hidden), self._head
        if head._forward_hooks or head._forward_pre_hooks:
            logits: Tensor = head(normed)
            return logits
        return product(normed, head.weight, head.bias)

    def _project(self, layer: Layer, hidden: Tensor, rotary: Rotary) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of one layer, turned."""
        projected = product(_normed(layer.before, hidden), layer.qkv, layer.qkv_bias)
        heads = projected.view(len(hidden), -1, self.head_dim)
        both, values = heads[:, : -self.kv_heads], heads[:, -self.kv_heads :]
        if layer.q_norm is not None and layer.k_norm is not None:
            queries, keys = _normed(layer.q_norm, both[:, : self.heads]), _normed(layer.k_norm, both[:, self.heads :])
            return rotary.turn(queries), rotary.turn(keys), values
        turned = rotary.turn(both)
        return turned[:, : self.heads], turned[:, self.heads :], values


def _layer(block: Any) -> Layer:
    """The tensors of one block, with projections of one input fused."""
    attention, mlp = block.self_attn, block.mlp
    qkv, qkv_bias = _fused(attention.q_proj, attention.k_proj, attention.v_proj)
    gate_up, gate_up_bias = _fused(mlp.gate_proj, mlp.up_proj)
    return Layer(
        before=block.input_layernorm,
        qkv=qkv,
        qkv_bias=qkv_bias,
        q_norm=getattr(attention, "q_norm", None),
        k_norm=getattr(attention, "k_norm", None),
        out=attention.o_proj,
        after=block.post_attention_layernorm,
        gate_up=gate_up,
        gate_up_bias=gate_up_bias,
        down=mlp.down_proj,
    )


def _fused(*linears: nn.Linear) -> tuple[Tensor, Tensor | None]:
    """One weight and one bias of which those of ``linears`` become views."""
    weight = _joined([linear.weight for linear in linears])
    biases = [linear.bias for linear in linears if linear.bias is not None]
    return weight, _joined(biases) if biases else None


def _joined(parameters: Sequence[Tensor]) -> Tensor:
    whole = torch.cat([parameter.detach() for parameter in parameters])
    for parameter, part in zip(parameters, torch.split(whole, [len(p) for p in parameters]), strict=True):
        parameter.data = part
    return whole


def _normed(norm: Any, values: Tensor) -> Tensor:
    return functional.rms_norm(values, norm.weight.shape, norm.weight, norm.variance_epsilon)


def _gated(layer: Layer, hidden: Tensor) -> Tensor:
    """What the MLP hands to its last projection, ``[N, intermediate]``."""
    gate, up = product(_normed(layer.after, hidden), layer.gate_up, layer.gate_up_bias).chunk(2, dim=-1)
    return functional.silu(gate, inplace=True).mul_(up)


def _add_linear(hidden: Tensor, values: Tensor, linear: nn.Linear) -> None:
    """Add a projection of ``values`` to ``hidden`` in place."""
    hidden.add_(product(values, linear.weight, linear.bias))
