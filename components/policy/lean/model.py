"""The forward pass of a dense decoder over packed tokens, with gradients.

Pre-norm blocks of grouped-query attention with rotary positions and a gated MLP, as Llama, Qwen2 and Qwen3 have them.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from components.policy.lean.attention import Attention
from components.policy.lean.gated import gated
from components.policy.lean.known import known, passes_trial
from components.policy.lean.norm import normed
from components.policy.lean.packing import Packed, packed
from components.policy.lean.products import joined, linear
from components.policy.lean.rotary import Rotary, turned

_PASSED: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
"""What the trial of a model said, so that it is made once only."""


def lean_pass(model: PreTrainedModel) -> LeanPass | None:
    """The lean pass of ``model``; None where it might not be the same, or not the faster one: on a GPU, in lower
    precision, under autocast, where weights are spread over ranks (they hook into modules), where activations are
    not kept."""
    if model.device.type != "cpu" or model.dtype != torch.float32 or torch.is_autocast_enabled("cpu"):
        return None
    head = model.get_output_embeddings()
    watched = head is None or head._forward_hooks or head._forward_pre_hooks or head._backward_hooks
    again = any(getattr(module, "gradient_checkpointing", False) for module in model.modules())
    if watched or again or not known(model):
        return None
    if model.training and model.config.attention_dropout:
        return None
    if model not in _PASSED:
        _PASSED[model] = passes_trial(model, lambda ids: _trial(LeanPass(model), ids))
    return LeanPass(model) if _PASSED[model] else None


class LeanPass:
    """Computes with the parameters of the model itself, which stay where they are."""

    def __init__(self, model: PreTrainedModel) -> None:
        config, body = model.config, model.base_model
        attention = body.layers[0].self_attn
        self._heads, self._kv_heads = int(config.num_attention_heads), int(config.num_key_value_heads)
        self._head_dim, self._scale = int(attention.head_dim), float(attention.scaling)
        self._body, self._head = body, model.get_output_embeddings()

    @property
    def vocabulary(self) -> int:
        return int(self._head.weight.shape[0])

    def hidden(self, batch: Packed) -> Tensor:
        """Hidden states ``[W, H]`` that the wanted tokens are predicted from."""
        rotary = self._rotary(int(batch.positions.max()) + 1).at(batch.positions)
        attend = Attention(batch, self._kv_heads, self._scale)
        table = self._body.embed_tokens  # the vector of its padding token is never learned
        hidden = nn.functional.embedding(batch.ids, table.weight, table.padding_idx)
        for block in self._body.layers:
            queries, keys, values = self._projected(block, hidden, rotary)
            out, mlp = block.self_attn.o_proj, block.mlp
            hidden = linear(attend(queries, keys, values), out.weight, out.bias, to=hidden)
            both = _joined(_norm(block.post_attention_layernorm, hidden), mlp.gate_proj, mlp.up_proj)
            hidden = linear(gated(both), mlp.down_proj.weight, mlp.down_proj.bias, to=hidden)
        return _norm(self._body.norm, hidden.index_select(0, batch.before))

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits ``[N, V]`` of hidden states ``[N, H]``."""
        return linear(hidden, self._head.weight, self._head.bias)

    def _projected(self, block: Any, hidden: Tensor, rotary: Rotary) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of one block, ``[N, heads, D]``, turned."""
        attention = block.self_attn
        projected = _joined(
            _norm(block.input_layernorm, hidden), attention.q_proj, attention.k_proj, attention.v_proj
        ).view(len(hidden), -1, self._head_dim)
        queries, keys, values = torch.split(projected, [self._heads, self._kv_heads, self._kv_heads], dim=1)
        if hasattr(attention, "q_norm"):
            queries, keys = _norm(attention.q_norm, queries), _norm(attention.k_norm, keys)
        return turned(queries, rotary), turned(keys, rotary), values

    @torch.no_grad()
    def _rotary(self, positions: int) -> Rotary:
        """Cosines and sines of the first ``positions`` positions."""
        cos, sin = self._body.rotary_emb(self._body.embed_tokens.weight[:1], torch.arange(positions)[None])
        half = self._head_dim // 2
        return Rotary(cos[0, :, :half].contiguous(), sin[0, :, :half].contiguous())


def _joined(values: Tensor, *linears: nn.Linear) -> Tensor:
    return joined(values, [layer.weight for layer in linears], [x.bias for x in linears if x.bias is not None])


def _norm(norm: Any, values: Tensor) -> Tensor:
    return normed(values, norm.weight, norm.variance_epsilon)


def _trial(lean: LeanPass, ids: Tensor) -> Tensor:
    """Logits of all of ``ids``, the first half as a prompt that two rows share."""
    prompt, row = ids[None].chunk(2, dim=1)
    rows = torch.cat([prompt, row, row[:, :1]], dim=1).expand(2, -1)  # the last one is asked for, and not read
    half = row.shape[1] + 1
    batch = packed(rows, torch.ones_like(rows), torch.ones(2, half, dtype=torch.bool), torch.zeros(2, dtype=torch.long))
    behind = batch.before[:half]
    before = torch.arange(prompt.shape[1] - 1)
    return lean.logits(lean.hidden(batch._replace(before=torch.cat([before, behind]))))
