"""Which models the lean forward pass is taken for: those that it is known to compute exactly.

`dense_model` gives None for a model that is not known to be computed exactly by it; then the model's own forward pass
is taken. Known is: the architecture by name, nothing in its configuration or its modules that would change the
computation, and in a trial the same logits.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from components.rollout.dense import DenseModel

ARCHITECTURES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
STATIC_ROTARY = ("default", "linear", "llama3", "yarn")
"""Rotary embeddings that depend on nothing but the position."""
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.1}
"""Norm of the difference in the trial, relative to that of the logits: far above rounding, far below another
computation."""


def dense_model(model: PreTrainedModel) -> DenseModel | None:
    """The lean forward pass of ``model``, which it shares its weights with; None where it might not be the same."""
    if not _known(model):
        return None
    expected = _trial_of_the_model(model)
    dense = DenseModel(model)
    difference = (_trial(dense) - expected).norm()
    return dense if difference <= TOLERANCE[dense.dtype] * expected.norm() else None


def _known(model: PreTrainedModel) -> bool:
    """Whether architecture, configuration and modules are all of the kind that is computed here."""
    config, head = model.config, model.get_output_embeddings()  # the head is called as a module, hooks and all
    if type(model).__name__ not in ARCHITECTURES or model.dtype not in TOLERANCE:
        return False
    blocks = list(model.base_model.layers)
    linears = [getattr(block.self_attn, name) for block in blocks for name in ("q_proj", "k_proj", "v_proj", "o_proj")]
    linears += [getattr(block.mlp, name) for block in blocks for name in ("gate_proj", "up_proj", "down_proj")]
    return (
        all(type(linear) is nn.Linear for linear in linears)
        and len({tensor.dtype for tensor in model.parameters()}) == 1
        and config.hidden_act == "silu"
        and config.rope_parameters["rope_type"] in STATIC_ROTARY
        and getattr(config, "pretraining_tp", 1) == 1
        and all(getattr(block.self_attn, "sliding_window", None) is None for block in blocks)
        and not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules() if module != head)
    )


def _trial_ids(vocabulary: int) -> Tensor:
    return torch.arange(1, 9) * 7919 % vocabulary


@torch.no_grad()
def _trial_of_the_model(model: PreTrainedModel) -> Tensor:
    """Logits that the model itself gives in the trial."""
    ids = _trial_ids(model.get_input_embeddings().weight.shape[0])
    return _centred(model(ids[None], use_cache=False).logits[0])


@torch.no_grad()
def _trial(dense: DenseModel) -> Tensor:
    """The same by the lean forward pass."""
    ids = _trial_ids(dense.embedding.weight.shape[0])

    def attend(_layer: int, *heads: Tensor) -> Tensor:
        queries, keys, values = (part.transpose(0, 1)[None] for part in heads)
        found = functional.scaled_dot_product_attention(
            queries, keys, values, is_causal=True, scale=dense.scale, enable_gqa=True
        )
        return found[0].transpose(0, 1).flatten(1)

    hidden = dense.forward(dense.embedding(ids), dense.rotary(len(ids)).at(torch.arange(len(ids))), attend)
    return _centred(dense.logits(hidden))


def _centred(logits: Tensor) -> Tensor:
    return logits.float() - logits.float().mean(-1, keepdim=True)
