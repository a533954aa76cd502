"""Parts of a plan against the tensors that the critic and the embedded engine make, of a Llama with random weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from factories import policy
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from components.config import Settings
from components.config.policy import LoraSettings
from components.config.rollout import TorchEngine as EngineSettings
from components.learner.batch import Batch
from components.learner.critic import Critic
from components.planning.held import loop_parts
from components.planning.passes import Load
from components.planning.shapes import shape_of
from components.policy import Policy
from components.policy.lora import adapted
from components.rollout.torch_engine import TorchEngine

PROMPT, NEW, GROUP, PROMPTS = 40, 24, 4, 2
ROWS = GROUP * PROMPTS
LOAD = Load(ROWS * (PROMPT + NEW), ROWS * NEW, ROWS, GROUP, PROMPT, NEW)
LORA = LoraSettings(rank=4, alpha=8)


def config(tied: bool) -> LlamaConfig:
    sizes = {"hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 3, "max_position_embeddings": 128}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return LlamaConfig(**sizes, **heads, vocab_size=320, tie_word_embeddings=tied, pad_token_id=0, eos_token_id=1)


def model(tied: bool = True) -> Policy:
    return replace(policy(), model=LlamaForCausalLM(config(tied)).eval())


def planned(tied: bool = True, lora: LoraSettings | None = None, **sections: Any) -> dict[str, float]:
    chosen = Settings.model_validate(
        {
            "policy": {"lora": lora},
            "rollout": {"group_size": GROUP, "max_new_tokens": NEW, **sections.pop("rollout", {})},
            "train": {"prompts_per_step": PROMPTS},
            "admission": {"min_distinct": 1},
            "objective": {"advantage": {"kind": "gae"}},
            **sections,
        }
    )
    return {part.name: part.size for part in loop_parts(chosen, shape_of(config(tied), lora), LOAD)}


def size(*tensors: Tensor) -> int:
    """Bytes of what these tensors lie in, each storage once."""
    return sum({one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in tensors}.values())


def batch() -> Batch:
    shape = (ROWS, PROMPT + NEW)
    ids = torch.randint(3, 250, shape, generator=torch.Generator().manual_seed(0))
    mask, rows = torch.ones(ROWS, NEW), torch.arange(ROWS)
    return Batch(ids, torch.ones(shape, dtype=torch.long), rows // GROUP, rows % GROUP, mask.bool(), -mask)


# The critic


@pytest.mark.parametrize("lora", [None, LORA])
@pytest.mark.parametrize("tied", [True, False])
def test_a_critic_takes_what_is_planned_of_weights_gradients_and_moments(tied, lora):
    critic = Critic(adapted(model(tied), lora, 0), Settings().learner.critic, Settings().learner)
    critic.step(batch(), torch.ones(ROWS, NEW), torch.zeros(ROWS, NEW))
    learned = [*critic._model.trainable().values()]
    moments = [m for one in critic._optimizer._adamw.state.values() for m in one.values() if m.dim()]
    head = 4 * size(*critic._model.head.parameters())
    ranks = {"learner": {"kind": "fsdp2", "ranks": {"processes": 2}}, "launch": {"kind": "processes"}}
    found = planned(tied, lora, **ranks)
    assert size(*learned, *(one.grad for one in learned), *moments) == found["critic"] + head
    base = [one for one in critic._model.parameters() if not one.requires_grad]
    assert size(*base) == found.get("critic's base", 0) and bool(base) == (lora is not None)


@pytest.mark.parametrize("lora", [None, LORA])
def test_the_pass_of_a_critic_is_planned_by_what_autograd_keeps(lora):
    critic = Critic(adapted(model(), lora, 0), Settings().learner.critic, Settings().learner)
    kept: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda one: kept.append(one) or one, lambda one: one):
        critic._values(batch())
    own = {one.untyped_storage().data_ptr() for one in critic._model.parameters()}
    activations = size(*(one for one in kept if one.untyped_storage().data_ptr() not in own))
    assert activations == pytest.approx(planned(lora=lora)["critic's pass"], rel=0.25)


# The embedded engine


@pytest.mark.parametrize("precision", ["policy", "bfloat16", "int8"])
def test_the_cache_of_the_engine_takes_what_is_planned(precision):
    engine = TorchEngine(model(), EngineSettings(precision=precision))
    context: Any = engine._context([(2, *range(3, PROMPT + 1), 3)] * PROMPTS, NEW)
    with torch.no_grad():
        context.read_prompts(GROUP)
    cache = context._cache
    if precision == "int8":  # its columns are added token by token
        found = size(*(one for layer in cache.layers for one in (layer.keys, layer.values)))
        found *= (PROMPT + NEW) / PROMPT
    else:
        found = size(cache._keys, cache._values, cache._columns._keys, cache._columns._values)
    assert found == planned(rollout={"engine": {"kind": "torch", "precision": precision}})["cache"]


def test_int8_rounds_the_linear_layers_alone():
    engine = TorchEngine(model(), EngineSettings(precision="int8"))
    found = {name: one for name, one in engine._policy.model.named_buffers() if not name.endswith("scale")}
    held = size(*engine._policy.model.parameters(), *(one for name, one in found.items() if "integers" in name))
    assert held == planned(rollout={"engine": {"kind": "torch", "precision": "int8"}})["engine's copy"]
