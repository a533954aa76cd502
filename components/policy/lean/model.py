"""The forward pass of a dense decoder over packed tokens, with gradients.

Pre-norm blocks of grouped-query attention with rotary positions and a gated MLP, as Llama, Qwen2 and Qwen3 have them.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from components.policy.lean.known import TOLERANCE, known, passes_trial
from components.policy.lean.layers import gated, normed, parts, projected, takes
from components.policy.lean.packing import Attention, Packed, packed
from components.policy.lean.products import linear
from components.policy.lean.rotary import Rotary, turned
from components.policy.lean.targets import scored

_PASSED: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
"""What the trial of a model said, so that it is made once only."""
KEPT = 2**24
"""Numbers that the attention of all layers may keep for the way back. Where they would be more, it is computed twice:
few of a large model's operations are in it, and much of its memory."""


def lean_pass(model: PreTrainedModel) -> LeanPass | None:
    """The lean pass of ``model``; None where it might not be the same, or not the faster one: on a GPU, with weights in
    lower precision, where weights are spread over ranks (they hook into modules), where activations are not kept.

    Under autocast its products are in bfloat16; weights, their gradients, the sums of layers, norms, attention and
    logits are in fp32.
    """
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
    if model.device.type != "cpu" or model.dtype != torch.float32 or dtype not in TOLERANCE:
        return None
    head = model.get_output_embeddings()
    watched = head is None or head._forward_hooks or head._forward_pre_hooks or head._backward_hooks
    again = any(getattr(module, "gradient_checkpointing", False) for module in model.modules())
    if watched or again or not known(model, takes):
        return None
    if model.training and model.config.attention_dropout:
        return None
    if model not in _PASSED:
        with torch.autocast("cpu", enabled=False):
            _PASSED[model] = passes_trial(model, lambda ids: _trial(LeanPass(model), ids))
    return LeanPass(model, dtype) if _PASSED[model] else None


class LeanPass:
    """Computes with the parameters of the model itself, which stay where they are, in products of ``dtype``. Not to be
    called under autocast."""

    def __init__(self, model: PreTrainedModel, dtype: torch.dtype = torch.float32) -> None:
        config, body = model.config, model.base_model
        attention = body.layers[0].self_attn
        self._heads, self._kv_heads = int(config.num_attention_heads), int(config.num_key_value_heads)
        self._head_dim, self._scale = int(attention.head_dim), float(attention.scaling)
        self._body, self._head, self._dtype = body, model.get_output_embeddings(), dtype
        self.vocabulary = int(self._head.weight.shape[0])

    def hidden(self, batch: Packed) -> Tensor:
        """Hidden states ``[W, H]`` that the wanted tokens are predicted from."""
        rotary = Rotary.first(self._body, self._head_dim, int(batch.positions.max()) + 1).at(batch.positions)
        attend = Attention(batch, self._kv_heads, self._scale)
        again = attend.kept(self._heads, self._head_dim) * len(self._body.layers) > KEPT
        table = self._body.embed_tokens  # the vector of its padding token is never learned
        hidden = nn.functional.embedding(batch.ids, table.weight, table.padding_idx)
        for block in self._body.layers:
            own, mlp = block.self_attn, block.mlp
            read = self._projected(block.input_layernorm, hidden, own.q_proj, own.k_proj, own.v_proj)
            if again and torch.is_grad_enabled():
                mixed = checkpoint(
                    self._mixed, own, read, attend, rotary, use_reentrant=False, preserve_rng_state=False
                )
            else:
                mixed = self._mixed(own, read, attend, rotary)
            weight, bias, low = parts(own.o_proj)
            hidden = linear(mixed, weight, bias, to=hidden)
            if low is not None:
                hidden = linear(linear(mixed, low.down), low.up, to=hidden)
            both = self._projected(block.post_attention_layernorm, hidden, mlp.gate_proj, mlp.up_proj)
            hidden = gated(both, parts(mlp.down_proj), to=hidden)
        return _norm(self._body.norm, hidden.index_select(0, batch.before))

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits ``[N, V]`` of hidden states ``[N, H]``."""
        return linear(hidden, self._head.weight, self._head.bias)

    def scored(self, hidden: Tensor, targets: Tensor, temperature: float, logits_at_once: int) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies of ``targets [N]``, see `targets`."""
        head = self._head
        return scored(hidden, targets, head.weight, head.bias, temperature, logits_at_once, self._dtype)

    def _projected(self, norm: Any, values: Tensor, *linears: nn.Module) -> Tensor:
        return projected(values, norm.weight, norm.variance_epsilon, [parts(layer) for layer in linears], self._dtype)

    def _mixed(self, attention: Any, read: Tensor, attend: Attention, rotary: Rotary) -> Tensor:
        """What attention makes of the queries, keys and values in ``read [N, (heads + 2 kv_heads) D]``."""
        heads = read.float().view(len(read), -1, self._head_dim)
        queries, keys, values = torch.split(heads, [self._heads, self._kv_heads, self._kv_heads], dim=1)
        if hasattr(attention, "q_norm"):
            queries, keys = _norm(attention.q_norm, queries), _norm(attention.k_norm, keys)
        return attend(turned(queries, rotary), turned(keys, rotary), values).to(self._dtype)


def _norm(norm: Any, values: Tensor) -> Tensor:
    return normed(values, norm.weight, norm.variance_epsilon)


def _trial(lean: LeanPass, ids: Tensor) -> Tensor:
    """Logits of all of ``ids``, the first half as a prompt that two rows share."""
    prompt, row = ids[None].chunk(2, dim=1)
    rows = torch.cat([prompt, row, row[:, :1]], dim=1).expand(2, -1)  # the last one is computed, and not read
    half = row.shape[1] + 1
    batch = packed(rows, torch.ones_like(rows), torch.ones(2, half, dtype=torch.bool), torch.zeros(2, dtype=torch.long))
    behind = batch.before[:half]
    before = torch.arange(prompt.shape[1] - 1)
    return lean.logits(lean.hidden(batch._replace(before=torch.cat([before, behind]))))
