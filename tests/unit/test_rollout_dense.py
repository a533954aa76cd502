"""The lean forward pass: it gives what transformers gives, or it is not taken."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from factories import gpt2, policy
from hypothesis import given
from hypothesis import strategies as st
from test_rollout import PROMPTS
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from components.config.rollout import TorchEngine as TorchEngineSettings
from components.policy import Policy
from components.policy.quantised import in_int8
from components.rollout import context, dense, static_cache
from components.rollout.base import Sampling
from components.rollout.dense import Projection, dense_model, packable
from components.rollout.torch_engine import TorchEngine
from components.types import Completion

SHAPE: dict[str, Any] = {
    "vocab_size": 272, "hidden_size": 48, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 6,
    "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 128,
}  # fmt: skip
ROPE: dict[str, Any] = {"rope_theta": 10000.0}
LINEAR = {**ROPE, "rope_type": "linear", "factor": 2.0}
LLAMA3 = {
    **ROPE, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip
YARN = {**ROPE, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
DYNAMIC = {**ROPE, "rope_type": "dynamic", "factor": 2.0}


@pytest.fixture(autouse=True)
def packed(monkeypatch):
    """Projections of these small models are packed, as those of large ones are."""
    monkeypatch.setattr(dense, "LEAST", 0)


def built(kind: type[PreTrainedModel], config: type, **changes: Any) -> PreTrainedModel:
    """A small model of that kind with weights, biases and norms that are all far from their initial values."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = kind(config(**{**SHAPE, **changes})).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
    return model.requires_grad_(False)


def qwen3(**changes: Any) -> PreTrainedModel:
    return built(Qwen3ForCausalLM, Qwen3Config, **changes)


def qwen2(**changes: Any) -> PreTrainedModel:
    return built(Qwen2ForCausalLM, Qwen2Config, **{**changes, "head_dim": 8})


def llama(**changes: Any) -> PreTrainedModel:
    return built(LlamaForCausalLM, LlamaConfig, **changes)


SAME = {
    "qwen3": lambda: qwen3(),
    "qwen3, tied": lambda: qwen3(tie_word_embeddings=True),
    "qwen3, as many key heads": lambda: qwen3(num_key_value_heads=6),
    "qwen3, biases": lambda: qwen3(attention_bias=True),
    "qwen3, yarn": lambda: qwen3(rope_parameters=YARN),
    "qwen2": lambda: qwen2(),
    "qwen2, one key head": lambda: qwen2(num_key_value_heads=1),
    "llama": lambda: llama(),
    "llama, biases": lambda: llama(attention_bias=True, mlp_bias=True),
    "llama, llama3 rotary": lambda: llama(rope_parameters=LLAMA3),
    "llama, linear rotary": lambda: llama(rope_parameters=LINEAR),
}


def hooked(model: PreTrainedModel) -> PreTrainedModel:
    model.base_model.layers[1].mlp.register_forward_hook(lambda _module, _args, output: 2 * output)
    return model


def softened(model: PreTrainedModel) -> PreTrainedModel:
    """A model that differs in a way that neither its name nor its configuration shows."""
    model.base_model.layers[1].mlp.act_fn = torch.nn.GELU()
    return model


OTHER = {
    "another architecture": lambda: gpt2().model,
    "an unchecked architecture": lambda: built(MistralForCausalLM, MistralConfig),
    "a sliding window": lambda: qwen2(use_sliding_window=True, sliding_window=4, max_window_layers=0),
    "rotary angles that depend on the length": lambda: llama(rope_parameters=DYNAMIC),
    "another activation": lambda: llama(hidden_act="gelu"),
    "another activation in one layer": lambda: softened(llama()),
    "linear layers that were replaced": lambda: in_int8(Policy(qwen3(), policy().tokenizer)).model,
    "something hooked in": lambda: hooked(llama()),
    "an unchecked precision": lambda: llama().to(torch.float16),
    "two precisions": lambda: mixed_precisions(llama()),
}


def mixed_precisions(model: PreTrainedModel) -> PreTrainedModel:
    model.base_model.norm.to(torch.bfloat16)
    return model


def sampled(model: PreTrainedModel, temperature: float = 1.0, tokens: int = 12) -> tuple[list[tuple[int, ...]], bool]:
    """Token ids of some completions, and whether the lean pass wrote them."""
    engine = TorchEngine(Policy(model, policy().tokenizer), TorchEngineSettings())
    found = engine.generate(PROMPTS, Sampling(n=8, max_new_tokens=tokens, temperature=temperature, seed=1))
    return [c.token_ids for row in found for c in row], engine._dense is not None


def logprobs(model: PreTrainedModel, prompt: tuple[int, ...], written: tuple[int, ...]) -> torch.Tensor:
    logits = model(torch.tensor([[*prompt, *written]])).logits[0, len(prompt) - 1 : -1]
    return torch.log_softmax(logits, -1).gather(1, torch.tensor(written)[:, None])[:, 0]


def engine_of(model: PreTrainedModel, precision: str = "auto") -> TorchEngine:
    """One whose lean pass computes the model."""
    engine = TorchEngine(Policy(model, policy().tokenizer), TorchEngineSettings(precision=precision))
    assert engine._dense is not None
    return engine


def lean(model: PreTrainedModel) -> dense.DenseModel:
    found = dense_model(model)
    assert found is not None
    return found


def as_of(model: PreTrainedModel, engine: TorchEngine, n: int = 4, **how: Any) -> list[tuple[Completion, ...]]:
    """What the engine samples, which reports the log-probabilities of this model."""
    found = engine.generate(PROMPTS, Sampling(n=n, temperature=1.0, seed=0, **{"max_new_tokens": 40, **how}))
    for prompt, group in zip(PROMPTS, found, strict=True):
        for completion in group:
            expected = logprobs(model, prompt, completion.token_ids)
            assert torch.allclose(torch.tensor(completion.logprobs), expected, rtol=0, atol=2e-5)
    return found


@pytest.mark.parametrize("name", SAME)
def test_log_probabilities_are_those_of_transformers(name):
    model = SAME[name]()
    as_of(model, engine_of(model))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", SAME)
def test_tokens_are_those_that_the_models_own_forward_pass_leads_to(name, temperature):
    model = SAME[name]()
    slow = copy.deepcopy(model)
    slow.register_forward_hook(lambda _module, _args, output: output)
    (fast_tokens, lean), (slow_tokens, own) = sampled(model, temperature), sampled(slow, temperature)
    assert (lean, own) == (True, False)
    assert fast_tokens == slow_tokens


@pytest.mark.parametrize("name", OTHER)
def test_a_model_that_might_compute_something_else_computes_itself(name):
    assert dense_model(OTHER[name]()) is None


@pytest.mark.parametrize("name", ["qwen2", "qwen3, tied", "llama, biases"])
def test_weights_that_are_loaded_into_the_model_are_computed_with_at_once(name):
    model, other = SAME[name](), SAME[name]()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.1)
    tested = engine_of(model)
    tested.load_weights(dict(other.named_parameters()))
    as_of(other, tested, max_new_tokens=8)


def test_fused_weights_take_no_memory_of_their_own():
    model = qwen3()
    lean(model)
    for block in model.base_model.layers:
        attention, mlp = block.self_attn, block.mlp
        for parts in ((attention.q_proj, attention.k_proj, attention.v_proj), (mlp.gate_proj, mlp.up_proj)):
            assert len({part.weight.untyped_storage().data_ptr() for part in parts}) == 1


@pytest.mark.skipif(not packable(torch.float32), reason="this processor has no products that read packed weights")
@pytest.mark.parametrize("tied", [True, False])
def test_packed_weights_are_the_only_ones(tied):
    model = qwen3(tie_word_embeddings=tied)
    lean(model).pack()
    held = {name for name, parameter in model.named_parameters() if parameter.dim() > 1 and parameter.numel()}
    assert held == {"model.embed_tokens.weight"}


@pytest.mark.parametrize("name", ["qwen3, tied", "qwen3", "llama, biases"])
def test_weights_of_another_name_or_shape_are_refused(name):
    dense = lean(SAME[name]())
    dense.pack()
    weights = dict(SAME[name]().named_parameters())
    odd = "model.layers.1.self_attn.k_proj.weight"
    with pytest.raises(ValueError, match="differing names"):
        dense.load_weights({other: weight for other, weight in weights.items() if other != odd})
    norm = "model.layers.1.input_layernorm.weight"  # one number would be broadcast
    before = dense.embedding.weight.clone()
    for name in (odd, norm):
        with pytest.raises(ValueError, match=f"another shape than the model's: {name}"):
            dense.load_weights({**{n: w + 1 for n, w in weights.items()}, name: weights[name][:1]})
    assert torch.equal(dense.embedding.weight, before)


@pytest.mark.skipif(not packable(torch.bfloat16), reason="this processor has no products in bfloat16")
@pytest.mark.parametrize("rows", [1, 3, 8, 17, 64, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_of_a_packed_product_does_not_depend_on_how_many_there_are(rows, dtype):
    layer = torch.nn.Linear(48, 80, dtype=dtype).requires_grad_(False)
    values = torch.randn(100, 48, dtype=dtype)
    plain = layer(values[:rows])
    projection = Projection(layer)
    projection.pack(keep=layer.weight)
    assert torch.equal(projection(values[:rows]), projection(values)[:rows])
    assert torch.allclose(projection(values[:rows]), plain, rtol=0, atol=8 * torch.finfo(dtype).eps)


def test_making_the_lean_pass_changes_no_weight_of_the_model():
    model = llama(attention_bias=True, mlp_bias=True)
    before = copy.deepcopy(model.state_dict())
    dense_model(model)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


CACHES = {"repeated": 10_000, "shared": 0}
"""Tokens of a prompt from which a group shares its keys and values, by the cache that this chooses."""


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("columns", [1, 3, 1000])
def test_a_cache_that_grows_is_the_same_cache(columns, cache, monkeypatch):
    model = qwen3()
    expected, _ = sampled(model, tokens=30)
    monkeypatch.setattr(static_cache, "COLUMNS", columns)
    monkeypatch.setattr(context, "SHARED_FROM", CACHES[cache])
    assert sampled(model, tokens=30)[0] == expected


@pytest.mark.parametrize("name", ["qwen3", "qwen2, one key head", "llama, biases"])
def test_prompts_that_a_group_shares_give_the_same_log_probabilities(name, monkeypatch):
    monkeypatch.setattr(context, "SHARED_FROM", 0)
    model = SAME[name]()
    found = as_of(model, engine_of(model), n=6, stop=tuple(range(4, 60)))
    assert len({len(completion.token_ids) for group in found for completion in group}) > 4  # some groups end first


@pytest.mark.parametrize("width", [context.SHARED_FROM - 1, context.SHARED_FROM])
@pytest.mark.parametrize("n", [1, 2])
def test_long_prompts_are_shared_by_groups_of_several(width, n):
    batch = context.DenseContext(lean(qwen3(max_position_embeddings=512)), [[2] * width, [3] * (width - 5)], limit=4)
    batch.read_prompts(n)
    shared = width == context.SHARED_FROM and n > 1
    assert isinstance(batch._cache, static_cache.SharedPrompts) == shared


@given(st.integers(1, 20), st.integers(1, 20), st.floats(0, 100), st.integers(0, 1000))
def test_attention_in_two_parts_is_attention_to_both(first, second, size, seed):
    generator = torch.Generator().manual_seed(seed)
    queries, k, v = (torch.randn(2, 1, rows, 4, generator=generator) for rows in (3, first + second, first + second))
    queries = size * queries
    parts = [static_cache.attended(queries, k[:, :, p], v[:, :, p], 1.0) for p in (slice(first), slice(first, None))]
    expected = torch.nn.functional.scaled_dot_product_attention(queries, k, v, scale=1.0)
    assert torch.allclose(
        static_cache.joined(*parts), expected, atol=1e-5 + 2e-6 * size
    )  # float32 rounds large scores coarsely


def test_bfloat16_is_computed_by_the_lean_pass_within_its_rounding():
    model = qwen3()
    ((completion,),) = engine_of(model, "bfloat16").generate(
        PROMPTS[:1], Sampling(n=1, max_new_tokens=8, temperature=1.0, seed=0)
    )
    gap = torch.tensor(completion.logprobs) - logprobs(model, PROMPTS[0], completion.token_ids)
    assert 0 < gap.abs().max() < 0.3
