"""The lean forward pass of a model, where it is known to be the model's own computation."""

from __future__ import annotations

from torch import Tensor, arange
from torch.nn import functional
from transformers import PreTrainedModel

from components.policy.lean.known import known, passes_trial
from components.rollout.dense import DenseModel


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

    hidden = dense.forward(dense.embedding(ids), dense.rotary(len(ids)).at(arange(len(ids), device=ids.device)), attend)
    return dense.logits(hidden)
