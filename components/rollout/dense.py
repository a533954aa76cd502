"""A lean forward pass for dense decoders, over the tensors of the model itself.

Pre-norm blocks of grouped-query attention with rotary positions and a gated MLP, as Llama, Qwen2 and Qwen3 have them.
`dense_model` states which models it is taken for. Transformers computes the same in several times as many operations,
most of which copy. Here the projections that share an input are one matrix product, and nothing is allocated that can
be written in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from components.policy.lean.known import known, passes_trial
from components.policy.lean.rotary import Rotary
from components.policy.policy import check_names
from components.rollout.projection import Projection, packable

LEAST = 2**18
"""Weights of a projection from which it is packed: for the demo's model the calls cost more than the packing saves."""
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Layer, queries ``[N, heads, D]``, keys and values ``[N, kv_heads, D]`` -> what they attend to, ``[N, heads * D]``."""


class Layer(NamedTuple):
    """One block: its projections, those of one input fused, and the modules of the rest."""

    before: nn.Module
    qkv: Projection
    q_norm: nn.Module | None
    k_norm: nn.Module | None
    out: Projection
    after: nn.Module
    gate_up: Projection
    down: Projection


class DenseModel:
    """The forward pass. The model's projections become views of the fused tensors, so that weights loaded into it are
    computed with at once and nothing is held twice; or they are packed, and then held and loaded here."""

    def __init__(self, model: PreTrainedModel) -> None:
        config, body = model.config, model.base_model
        attention = body.layers[0].self_attn
        self.heads, self.kv_heads = int(config.num_attention_heads), int(config.num_key_value_heads)
        self.head_dim, self.scale = int(attention.head_dim), float(attention.scaling)
        self.embedding, self._body = body.embed_tokens, body
        self.layers = [_layer(block) for block in body.layers]
        self._model, self._packed = model, list[Projection]()
        head = model.get_output_embeddings()
        hooked = head._forward_hooks or head._forward_pre_hooks
        self._head: Callable[[Tensor], Tensor] = head if hooked else Projection(head)

    def pack(self) -> None:
        """Hold the projections as the fastest library reads them; where there is none, leave them as they are.

        The model itself cannot compute any more. A head that is tied to the embedding is held in addition.
        """
        if self.device.type != "cpu" or not packable(self.dtype):
            return
        parts = [part for layer in self.layers for part in layer if isinstance(part, Projection)]
        parts += [self._head] if isinstance(self._head, Projection) else []
        self._packed = [part for part in parts if part.size >= LEAST]
        for projection in self._packed:
            projection.pack(keep=self.embedding.weight)

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Compute with these weights from now on.

        Raises:
            ValueError: a name is missing or unknown, or a shape is another.
        """
        own = dict(self._model.named_parameters())
        check_names(own, weights)
        names: dict[Tensor, str] = {parameter: name for name, parameter in own.items()}
        packed = {part: shape for one in self._packed for part, shape in zip(one.weights, one.shapes, strict=True)}

        def read(parameter: Tensor) -> Tensor:
            name, weight = names[parameter], weights[names[parameter]]
            if weight.shape != packed.get(parameter, parameter.shape):
                raise ValueError(f"a weight of another shape than the model's: {name}")
            return weight

        if isinstance(weights, dict):  # they are here: all are looked at before any is taken
            for parameter in own.values():
                read(parameter)
        for projection in self._packed:
            projection.load([read(parameter) for parameter in projection.weights])
        for parameter in own.values():
            if parameter.numel():
                parameter.copy_(read(parameter))

    @property
    def dtype(self) -> torch.dtype:
        """The precision it computes in."""
        dtype: torch.dtype = self.embedding.weight.dtype
        return dtype

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        device: torch.device = self.embedding.weight.device
        return device

    def rotary(self, positions: int) -> Rotary:
        """Cosines and sines of the first ``positions`` positions."""
        return Rotary.first(self._body, self.head_dim, positions)

    def forward(self, hidden: Tensor, rotary: Rotary, attend: Attend) -> Tensor:
        """Hidden states ``[N, H]`` of N tokens from their embeddings, which are overwritten."""
        for number, layer in enumerate(self.layers):
            queries, keys, values = self._project(layer, hidden, rotary)
            hidden.add_(layer.out(attend(number, queries, keys, values)))
            hidden.add_(layer.down(_gated(layer, hidden)))
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits ``[N, V]`` of hidden states ``[N, H]``."""
        return self._head(_normed(self._body.norm, hidden))

    def _project(self, layer: Layer, hidden: Tensor, rotary: Rotary) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of one layer, turned."""
        projected = layer.qkv(_normed(layer.before, hidden))
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
    return Layer(
        before=block.input_layernorm,
        qkv=Projection(attention.q_proj, attention.k_proj, attention.v_proj),
        q_norm=getattr(attention, "q_norm", None),
        k_norm=getattr(attention, "k_norm", None),
        out=Projection(attention.o_proj),
        after=block.post_attention_layernorm,
        gate_up=Projection(mlp.gate_proj, mlp.up_proj),
        down=Projection(mlp.down_proj),
    )


def _normed(norm: Any, values: Tensor) -> Tensor:
    return functional.rms_norm(values, norm.weight.shape, norm.weight, norm.variance_epsilon)


def _gated(layer: Layer, hidden: Tensor) -> Tensor:
    """What the MLP hands to its last projection, ``[N, intermediate]``."""
    gate, up = layer.gate_up(_normed(layer.after, hidden)).chunk(2, dim=-1)
    return functional.silu(gate, inplace=True).mul_(up)


def dense_model(model: PreTrainedModel) -> DenseModel | None:
    """The lean forward pass of ``model``, which it shares its weights with; None where it might not be the same. Then
    the model's own forward pass is taken."""
    if not known(model):
        return None
    made: list[DenseModel] = []

    def lean(ids: Tensor) -> Tensor:
        made.append(DenseModel(model))
        return _trial(made[0], ids)

    return made[0] if passes_trial(model, lean) else None


def _trial(dense: DenseModel, ids: Tensor) -> Tensor:
    """Logits ``[N, V]`` of token ids ``[N]``."""

    def attend(_layer: int, *heads: Tensor) -> Tensor:
        queries, keys, values = (part.transpose(0, 1)[None] for part in heads)
        found = functional.scaled_dot_product_attention(
            queries, keys, values, is_causal=True, scale=dense.scale, enable_gqa=True
        )
        return found[0].transpose(0, 1).flatten(1)

    hidden = dense.forward(
        dense.embedding(ids), dense.rotary(len(ids)).at(torch.arange(len(ids), device=ids.device)), attend
    )
    return dense.logits(hidden)
