"""Which models the lean forward passes are taken for: those that they are known to compute exactly.

Known is: the architecture by name, nothing in its configuration or its modules that would change the computation, and
in a trial the same logits.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

ARCHITECTURES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
STATIC_ROTARY = ("default", "linear", "llama3", "yarn")
"""Rotary embeddings that depend on nothing but the position."""
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.1}
"""Norm of the difference in the trial, relative to that of the logits: far above rounding, far below another
computation."""


def is_linear(layer: nn.Module) -> bool:
    """Whether the layer is a linear one and nothing else."""
    return type(layer) is nn.Linear


def known(model: PreTrainedModel, linear: Callable[[nn.Module], bool] = is_linear) -> bool:
    """Whether architecture, configuration and modules are all of the kind that is computed here; ``linear`` says so of
    the layers of every block."""
    config, head = model.config, model.get_output_embeddings()  # the head is called as a module, hooks and all
    if type(model).__name__ not in ARCHITECTURES or model.dtype not in TOLERANCE:
        return False
    blocks = list(model.base_model.layers)
    linears = [getattr(block.self_attn, name) for block in blocks for name in ("q_proj", "k_proj", "v_proj", "o_proj")]
    linears += [getattr(block.mlp, name) for block in blocks for name in ("gate_proj", "up_proj", "down_proj")]
    return (
        all(map(linear, linears))
        and len({tensor.dtype for tensor in model.parameters()}) == 1
        and config.hidden_act == "silu"
        and config.rope_parameters["rope_type"] in STATIC_ROTARY
        and getattr(config, "pretraining_tp", 1) == 1
        and all(getattr(block.self_attn, "sliding_window", None) is None for block in blocks)
        and not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules() if module != head)
    )


@torch.no_grad()
def passes_trial(model: PreTrainedModel, lean: Callable[[Tensor], Tensor]) -> bool:
    """Whether ``lean`` makes the logits ``[N, V]`` of token ids ``[N]`` that the model itself makes.

    ``lean`` is evaluated after the model: to make it may change what the model computes with.
    """
    ids = torch.arange(1, 9, device=model.device) * 7919 % model.get_input_embeddings().weight.shape[0]
    expected = _centred(model(ids[None], use_cache=False).logits[0])
    difference = (_centred(lean(ids)) - expected).norm()
    return bool(difference <= TOLERANCE[model.dtype] * expected.norm())


def _centred(logits: Tensor) -> Tensor:
    return logits.float() - logits.float().mean(-1, keepdim=True)
