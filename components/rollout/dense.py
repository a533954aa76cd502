"""A lean forward pass for dense decoders, over the tensors of the model itself.

Pre-norm blocks of grouped-query attention with rotary positions and a gated MLP, as Llama, Qwen2 and Qwen3 have them.
`dense_model` states which models it is taken for. Transformers computes the same in several times as many operations,
most of which copy. Here the projections that share an input are one matrix product, and nothing is allocated that can
be written in place.

A product of few rows takes little longer than reading its weights, and oneDNN puts plain ones into its own order before
every product. Packed once, when they are loaded, they are read as they lie: 1.3 to 2 times as fast at 8 to 32 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from components.policy.lean.known import known, passes_trial
from components.policy.lean.products import SIZES, onednn, product
from components.policy.lean.rotary import Rotary
from components.policy.policy import check_names

ROWS = 32
"""Rows that weights are packed for. The layout serves every other number as well: measured from 1 to 256."""
LEAST = 2**18
"""Weights of a projection from which it is packed: for the demo's model the calls cost more than the packing saves."""
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Layer, queries ``[N, heads, D]``, keys and values ``[N, kv_heads, D]`` -> what they attend to, ``[N, heads * D]``."""


class Projection:
    """Linear layers of one input as one product, their outputs side by side.

    Until `pack` the weights of the layers are views of one tensor; from then on the packed weights are the only ones.
    """

    def __init__(self, *linears: nn.Linear) -> None:
        self.weights = [linear.weight for linear in linears]
        self.shapes = [weight.shape for weight in self.weights]
        self.size = sum(shape.numel() for shape in self.shapes)
        self._weight = _joined(self.weights)
        biases = [linear.bias for linear in linears if linear.bias is not None]
        self._bias = _joined(biases) if biases else None
        self._packed = False

    def pack(self, keep: nn.Parameter) -> None:
        """Pack the weights, and empty the parameters that they came from unless these are ``keep``."""
        self._weight, self._packed = _packed(self._weight), True
        for parameter in self.weights:
            if parameter is not keep:
                parameter.data = parameter.data.new_empty(0)

    def load(self, weights: Sequence[Tensor]) -> None:
        """Pack other weights, one ``[out, in]`` for each layer, of the same `shapes`."""
        self._weight = _packed(torch.cat([weight.detach() for weight in weights]).to(self._weight.dtype))

    def __call__(self, values: Tensor) -> Tensor:
        """``[N, in]`` -> ``[N, out]``."""
        if not self._packed:
            return product(values, self._weight, self._bias)
        found: Tensor = torch.ops.mkldnn._linear_pointwise(filled(values), self._weight, self._bias, "none", [], "")
        return found[: len(values)]


def packable(dtype: torch.dtype) -> bool:
    """Whether oneDNN computes in this precision here."""
    if not onednn() or not hasattr(torch.ops.mkldnn, "_reorder_linear_weight"):
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()))


def filled(values: Tensor) -> Tensor:
    """``values`` with rows of zeros behind, up to a power of two or a multiple of ``SIZES``: oneDNN makes a program for
    every number of rows that it has not met, which takes longer than a small product does."""
    rows = len(values)
    missing = -rows % SIZES if rows > SIZES else (1 << (rows - 1).bit_length()) - rows
    return functional.pad(values, (0, 0, 0, missing)) if missing else values


def _packed(weight: Tensor) -> Tensor:
    found: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, ROWS)
    return found


def _joined(parameters: Sequence[Tensor]) -> Tensor:
    """One tensor of which ``parameters`` become views; of a single one its own."""
    if len(parameters) == 1:
        return parameters[0].detach()
    whole = torch.cat([parameter.detach() for parameter in parameters])
    for parameter, part in zip(parameters, torch.split(whole, [len(p) for p in parameters]), strict=True):
        parameter.data = part
    return whole


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
        self.dtype: torch.dtype = self.embedding.weight.dtype
        self.device: torch.device = self.embedding.weight.device
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
