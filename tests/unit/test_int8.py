"""Quantised rollouts: what 8-bit integers change, by how much, and that every sync quantises again."""

from __future__ import annotations

import pytest
import torch
from factories import TINY, gpt2, policy
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from components.config.rollout import RolloutSettings
from components.config.rollout import TorchEngine as TorchEngineSettings
from components.errors import InputError
from components.policy import Policy, response_logprobs
from components.policy.padding import pad
from components.policy.quantised import Int8Linear, in_int8, quantise
from components.policy.tiny import build_model
from components.rollout import Sampling
from components.rollout.torch_engine import TorchEngine, in_bfloat16

PROMPTS = [(2, 30, 3), (2, 30, 31, 32, 33, 34, 3), (2, 40, 41, 3)]
SAMPLING = Sampling(n=8, max_new_tokens=12, temperature=1.0, seed=0)


def engine(policy: Policy, precision: str) -> TorchEngine:
    return TorchEngine(policy, TorchEngineSettings(precision=precision))


def other() -> Policy:
    changed = policy()
    with torch.no_grad():
        for parameter in changed.model.parameters():
            parameter.mul_(-1.5)
    return changed


def linear(inputs: int, outputs: int, bias: bool = False) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(inputs, outputs, bias=bias)


# Integers


@pytest.mark.parametrize(
    ("values", "scale", "integers"),
    [
        ([1.27, -0.5, 0.0], 0.01, [127, -50, 0]),
        ([-12.7, 0.04, 0.06], 0.1, [-127, 0, 1]),
        ([0.0, 0.0, 0.0], 0.0, [0, 0, 0]),
    ],
)
def test_worked_rows_and_their_scale(values, scale, integers):
    found, found_scale = quantise(torch.tensor([values]))
    assert found_scale.item() == pytest.approx(scale)
    assert found.tolist() == [integers]
    assert found.dtype == torch.int8


WEIGHTS = st.floats(-1e4, 1e4, width=32).filter(lambda w: w == 0 or abs(w) > 1e-30)
"""Below that the step itself is a subnormal number, which the processor may take for 0."""


@settings(deadline=None)
@given(values=st.lists(WEIGHTS, min_size=1, max_size=9))
def test_rounding_is_off_by_half_a_step_at_the_most(values):
    row = torch.tensor([values])
    integers, scale = quantise(row)
    assert integers.abs().max() <= 127
    assert ((scale * integers - row).abs() <= scale * 0.5001).all()


def test_every_row_has_a_scale_of_its_own_so_that_a_large_one_does_not_drown_a_small_one():
    integers, scale = quantise(torch.tensor([[1000.0, 500.0], [0.001, 0.0005]]))
    assert integers[0].tolist() == integers[1].tolist() == [127, 64]
    assert scale.squeeze().tolist() == pytest.approx([1000 / 127, 0.001 / 127])


# The layer


@pytest.mark.parametrize("shape", [(1, 1, 33), (2, 5, 33), (3, 33), (0, 33)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_is_the_exact_product_of_its_rounded_weights_and_inputs(shape, bias):
    source = linear(33, 17, bias)
    layer, inputs = Int8Linear(source), torch.randn(shape)
    integers, scale = quantise(inputs.reshape(-1, 33))
    expected = (integers.double() * scale) @ layer.dequantised().double().T + (source.bias if bias else 0)
    assert torch.allclose(layer(inputs).double(), expected.reshape(*shape[:-1], 17), atol=1e-5)


def test_a_layer_is_near_the_one_it_was_made_of_but_not_equal():
    source, inputs = linear(256, 64), torch.randn(100, 256)
    gap = (Int8Linear(source)(inputs) - source(inputs)).abs().mean() / source(inputs).abs().mean()
    assert 0.001 < gap < 0.02


def test_a_layer_answers_in_the_precision_it_is_asked_in():
    assert Int8Linear(linear(8, 8))(torch.ones(1, 8, dtype=torch.bfloat16)).dtype == torch.bfloat16


# The copy


def test_all_linear_layers_are_quantised_but_the_head_which_stays_tied_to_the_embedding():
    copy = in_int8(policy())
    kept = [name for name, module in copy.model.named_modules() if isinstance(module, nn.Linear)]
    assert kept == ["lm_head"]
    assert copy.model.lm_head.weight is copy.model.get_input_embeddings().weight
    assert (
        sum(isinstance(module, Int8Linear) for module in copy.model.modules()) == 7
    )  # four of attention, three of MLP


def test_a_copy_has_the_names_of_the_policy_and_its_rounded_weights():
    source, found = policy(), in_int8(policy()).weights()
    assert found.keys() == source.weights().keys()
    name = "model.layers.0.mlp.up_proj.weight"
    scale = source.weights()[name].abs().amax(1, keepdim=True) / 127
    assert (found[name] - source.weights()[name]).abs().max() > 0
    assert ((found[name] - source.weights()[name]).abs() <= scale * 0.5001).all()


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_a_model_without_linear_layers_is_refused_instead_of_sampled_from_as_it_is(precision):
    with pytest.raises(InputError, match="no linear layer"):
        engine(gpt2(), precision)


# The engine


@pytest.mark.parametrize("precision", ["auto", "policy", "bfloat16", "int8", "int4"])
@pytest.mark.parametrize("own", [False, True])
def test_an_engine_leaves_a_policy_as_it_is_and_copies_none_that_is_its_own(precision, own):
    source = policy()
    kept = {name: (p, p.detach().clone()) for name, p in source.model.named_parameters()}
    tested = TorchEngine(source, TorchEngineSettings(precision=precision), own=own)
    held = dict(tested._policy.model.named_parameters())
    assert all((held[name] is kept[name][0]) == own for name in held)
    same = [now.dtype == old.dtype and torch.equal(now, old) for now, old in kept.values()]
    assert own or (all(same) and dict(source.model.named_parameters()).keys() == kept.keys())


@pytest.mark.parametrize("precision", ["bfloat16", "int8", "int4"])
def test_an_engine_samples_the_same_again(precision):
    one, again = (engine(policy(), precision).generate(PROMPTS, SAMPLING) for _ in range(2))
    assert one == again


@pytest.mark.parametrize("precision", ["bfloat16", "int8", "int4"])
def test_after_a_sync_an_engine_equals_a_new_one_of_the_new_weights(precision):
    synced = engine(policy(), precision)
    before = synced.generate(PROMPTS, SAMPLING)
    synced.load_weights(other().weights())
    assert synced.generate(PROMPTS, SAMPLING) == engine(other(), precision).generate(PROMPTS, SAMPLING) != before


@pytest.mark.parametrize("change", [lambda w: w.popitem(), lambda w: w.update(foreign=torch.zeros(1))])
def test_a_partial_or_foreign_set_of_weights_is_refused(change):
    weights = policy().weights()
    change(weights)
    with pytest.raises(ValueError, match="do not fit"):
        engine(policy(), "int8").load_weights(weights)


def test_a_weight_of_another_shape_is_refused():
    name = "model.layers.0.mlp.up_proj.weight"
    with pytest.raises(ValueError, match="shape"):
        engine(policy(), "int8").load_weights(policy().weights() | {name: torch.ones(1, 1)})


def gaps(sampler: Policy, precision: str, scored_by: Policy) -> torch.Tensor:
    """Log-probability of every sampled token under ``scored_by`` minus the engine's own."""
    found = [
        (prompt, completion)
        for prompt, row in zip(PROMPTS, engine(sampler, precision).generate(PROMPTS, SAMPLING), strict=True)
        for completion in row
    ]
    padded = pad([prompt for prompt, _ in found], [c.token_ids for _, c in found], sampler.pad_id)
    with torch.no_grad():
        responses = padded.response_mask.shape[1]
        logp = response_logprobs(scored_by.model, padded.input_ids, padded.attention_mask, responses, 1.0).logp
    own = torch.tensor([value for _, c in found for value in c.logprobs])
    return logp[padded.response_mask] - own


@pytest.mark.parametrize(
    ("precision", "least", "most"),
    [("policy", 0, 1e-5), ("bfloat16", 1e-3, 0.1), ("int8", 1e-3, 0.1), ("int4", 0.03, 1)],
)
def test_the_gap_to_the_policy_grows_with_the_rounding_and_stays_small(precision, least, most):
    assert least <= gaps(policy(), precision, policy()).abs().mean() < most


def test_bfloat16_rounds_parameters_alone_and_late_positions_are_as_exact_as_early_ones():
    tokenizer = policy().tokenizer
    exact = Policy(build_model(TINY.model_copy(update={"max_positions": 1024}), tokenizer, 0).eval(), tokenizer)
    with torch.no_grad():
        for matrix in (p for p in exact.model.parameters() if p.ndim == 2):
            matrix.mul_(5)  # so that attention is not even
    rounded = in_bfloat16(exact.frozen_copy())
    assert {p.dtype for p in rounded.model.parameters()} == {torch.bfloat16}
    buffers = dict(rounded.model.named_buffers())
    for name, own in exact.model.named_buffers():
        assert buffers[name].dtype == torch.float32 and torch.equal(buffers[name], own)
    ids = torch.randint(4, len(tokenizer), (4, 1000), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        one, other = (each.model(ids).logits.float().log_softmax(-1) for each in (exact, rounded))
    gap = (one - other).abs().mean((0, 2))
    assert gap[800:].mean() < 1.2 * gap[:100].mean()


def test_reported_log_probabilities_are_those_of_the_quantised_model():
    assert gaps(policy(), "int8", in_int8(policy())).abs().max() < 1e-3


def test_a_checkpoint_is_not_judged_at_a_precision_for_training():
    chosen = RolloutSettings(engine=TorchEngineSettings(precision="int8", batch_rows=7))
    assert chosen.as_policy().engine == TorchEngineSettings(precision="auto", batch_rows=7)
    assert chosen.as_policy().group_size == chosen.group_size
    exact = RolloutSettings(engine=TorchEngineSettings(precision="policy"))
    assert exact.as_policy() == exact
