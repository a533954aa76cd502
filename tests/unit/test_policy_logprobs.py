"""Log-probabilities without holding all logits: the same numbers and gradients, whatever the architecture does."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from factories import policy, prefer
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    CohereConfig,
    Gemma2Config,
    GPT2Config,
    GraniteConfig,
    LlamaConfig,
    PreTrainedModel,
    Qwen3Config,
    Qwen3MoeConfig,
)

from components.policy import TokenStats, logprobs, response_logprobs
from components.policy.head import split_head
from components.policy.logprobs import LOGITS_AT_ONCE, distribution_stats, model_inputs
from components.policy.mixing import Mixes

V, R, TEMPERATURE = 300, 6, 0.7
SHAPE: dict[str, Any] = {
    "vocab_size": V,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": 1,
    "pad_token_id": 0,
}
CONFIGS = {
    "qwen3": Qwen3Config(**SHAPE, tie_word_embeddings=True),
    "qwen3_moe": Qwen3MoeConfig(**SHAPE, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32),
    "llama": LlamaConfig(**SHAPE),
    "gpt2": GPT2Config(vocab_size=V, n_positions=64, n_embd=32, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=1),
    "gemma2": Gemma2Config(**SHAPE, final_logit_softcapping=0.5),
    "cohere": CohereConfig(**SHAPE, logit_scale=0.3),
    "granite": GraniteConfig(**SHAPE, logits_scaling=3.0),
}
HOW: dict[str, dict[str, Any]] = {
    "in one piece": {},
    "in pieces of four tokens": {"logits_at_once": 4 * V + 7},
    "in pieces of one token": {"logits_at_once": 1},
    "only those that count": {"mask": True, "logits_at_once": 4 * V},
}

IDS = torch.randint(3, V, (3, 12), generator=torch.Generator().manual_seed(0))
ATTENTION = torch.ones_like(IDS)
ATTENTION[0, :3] = 0
MASK = torch.ones(3, R, dtype=torch.bool)
MASK[1, 4:] = False
MASK[2, 1] = False


def model_of(name: str, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(CONFIGS[name]).eval()
    with torch.no_grad():  # so that distributions are far from even
        model.get_output_embeddings().weight.mul_(8)
    return model.to(dtype)


def scored(model: PreTrainedModel, **how: Any) -> TokenStats:
    if how.pop("mask", False):
        how["mask"] = MASK
    return response_logprobs(model, IDS, ATTENTION, R, TEMPERATURE, **how)


def plain(model: PreTrainedModel) -> TokenStats:
    """The definition, from all logits of the model's own forward pass."""
    logits = model(**model_inputs(model, IDS, ATTENTION)).logits[:, -R - 1 : -1].float() / TEMPERATURE
    distribution = torch.log_softmax(logits, -1)
    logp = distribution.gather(-1, IDS[:, -R:, None]).squeeze(-1)
    return TokenStats(logp, -(distribution.exp() * distribution).sum(-1))


def gradients(model: PreTrainedModel, stats: TokenStats, entropy: float) -> dict[str, Tensor]:
    """Of a loss in which every token has another weight."""
    weights = torch.linspace(-1, 1, 3 * R).view(3, R) * MASK
    model.zero_grad()
    (weights * (stats.logp + entropy * stats.entropy)).sum().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
@pytest.mark.parametrize("name", CONFIGS)
def test_numbers_and_gradients_are_those_of_the_whole_logits(name, how):
    model = model_of(name)
    expected, found = plain(model), scored(model, entropy_grad=True, **how)
    for one, other in zip(found[:2], expected[:2], strict=True):
        assert torch.allclose(one * MASK, other * MASK, atol=1e-6, rtol=1e-6)
    wanted, got = gradients(model, expected, 0.3), gradients(model, found, 0.3)
    assert got.keys() == wanted.keys()
    # A lean pass adds up in another order; tests/unit/test_policy_lean.py is about it.
    limit = 1e-5 if "mask" in how and name in ("qwen3", "llama") else 1e-6
    assert all(relative(got[key], wanted[key]) < limit for key in wanted)


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
@pytest.mark.parametrize("name", ["qwen3", "gemma2"])
def test_in_half_precision_numbers_are_the_same_and_gradients_differ_by_their_rounding(name, how):
    model = model_of(name, torch.bfloat16)
    expected, found = plain(model), scored(model, entropy_grad=True, **how)
    for one, other in zip(found[:2], expected[:2], strict=True):
        assert torch.allclose(one * MASK, other * MASK, atol=1e-6, rtol=1e-6)
    wanted, got = gradients(model, expected, 0.3), gradients(model, found, 0.3)
    assert all(relative(got[key], wanted[key]) < 2 * torch.finfo(torch.bfloat16).eps for key in wanted)


def relative(found: Tensor, expected: Tensor) -> float:
    return ((found - expected).abs().max() / expected.abs().max().clamp(min=1e-12)).item()


@pytest.mark.parametrize("name", CONFIGS)
def test_every_architecture_here_is_scored_in_pieces(name):
    model = model_of(name)
    head = split_head(model, model_inputs(model, IDS, ATTENTION), R + 1)
    assert head is not None
    assert (head.hidden.shape, head.vocabulary) == ((3, R + 1, 32), V)


@pytest.mark.parametrize("wanted", [MASK, torch.zeros_like(MASK)], ids=["some", "no"])
@pytest.mark.parametrize("tokens", [1, 18, 40])
@pytest.mark.parametrize("entropy_grad", [False, True])
def test_as_many_pieces_as_another_rank_needs_change_no_number(wanted, tokens, entropy_grad):
    """Every piece passes the output layer forwards, once more for the backward pass, and backwards."""
    model, calls = model_of("qwen3"), []
    layer = model.get_output_embeddings()
    layer.register_forward_hook(lambda *_: calls.append("forwards"))
    layer.register_full_backward_hook(lambda *_: calls.append("backwards"))
    how = {"mask": wanted, "logits_at_once": 4 * V, "entropy_grad": entropy_grad}
    expected = response_logprobs(model, IDS, ATTENTION, R, TEMPERATURE, **how)
    slopes = gradients(model, expected, 0.3)
    calls.clear()
    found = response_logprobs(model, IDS, ATTENTION, R, TEMPERATURE, **how, at_least=tokens)
    assert torch.equal(found.logp, expected.logp) and torch.equal(found.entropy, expected.entropy)
    got = gradients(model, found, 0.3)
    assert all(relative(got[key], slopes[key]) < 1e-6 for key in slopes)
    pieces = max(math.ceil(tokens / 4), math.ceil(wanted.sum() / 4))
    assert calls.count("forwards") == 1 + (2 * pieces if pieces > 1 else 1)
    assert calls.count("backwards") == pieces


@pytest.mark.parametrize("tokens", [1, 4, 5])
def test_no_more_logits_exist_at_a_time_than_allowed(tokens):
    model, seen = model_of("qwen3"), []
    stats_of = model.get_output_embeddings().register_forward_hook
    stats_of(lambda _layer, _inputs, logits: seen.append(logits.shape[:-1].numel()))
    scored(model, logits_at_once=tokens * V).logp.sum().backward()
    probe, *pieces = seen
    assert (probe, max(pieces)) == (3, tokens)
    assert sum(pieces) == 2 * 3 * R  # once forward, once more for the backward pass


def test_what_fits_into_one_piece_is_made_once():
    model, seen = model_of("qwen3"), []
    model.get_output_embeddings().register_forward_hook(lambda _layer, _inputs, logits: seen.append(len(logits)))
    scored(model, logits_at_once=LOGITS_AT_ONCE).logp.sum().backward()
    assert len(seen) == 2  # the probe, and all tokens


# What models do to their logits


def changed(change: Callable[[Tensor], Tensor]) -> PreTrainedModel:
    """A model that does something to its logits that its configuration does not tell."""
    model = model_of("llama")

    def after(_model: object, _inputs: object, output: Any) -> Any:
        output.logits = change(output.logits)
        return output

    model.register_forward_hook(after)
    return model


def forbid_token(logits: Tensor) -> Tensor:
    """Written into the logits themselves, as image tokens are forbidden in Chameleon."""
    logits = logits.clone() if logits.requires_grad else logits
    logits[..., 7] = -100.0
    return logits


UNKNOWN = {
    "a cap": lambda logits: torch.tanh(logits / 30) * 30,
    "a scale": lambda logits: logits * 1.001,
    "a limit": lambda logits: logits.clamp(-500, 500),
    "a bias": lambda logits: logits + torch.nn.functional.one_hot(torch.tensor(9), V),
    "a forbidden token": forbid_token,
}


@pytest.mark.parametrize("change", UNKNOWN.values(), ids=UNKNOWN)
def test_logits_that_are_changed_in_an_unknown_way_are_taken_whole(change):
    model = changed(change)
    assert split_head(model, model_inputs(model, IDS, ATTENTION), R + 1) is None
    expected, found = plain(model), scored(model, logits_at_once=V, entropy_grad=True)
    assert torch.allclose(found.logp, expected.logp, atol=1e-6)
    wanted, got = gradients(model, expected, 0.3), gradients(model, found, 0.3)
    assert all(relative(got[key], wanted[key]) < 1e-6 for key in wanted)


def test_tokens_that_are_not_wanted_get_zero_from_a_model_that_cannot_be_cut_too():
    model = changed(UNKNOWN["a cap"])
    expected, found = plain(model), scored(model, mask=True, entropy_grad=True)
    for one, other in zip(found[:2], expected[:2], strict=True):
        assert torch.equal(one != 0, MASK)
        assert torch.allclose(one, other * MASK, atol=1e-6)
    wanted, got = gradients(model, expected, 0.3), gradients(model, found, 0.3)
    assert all(relative(got[key], wanted[key]) < 1e-6 for key in wanted)


def test_a_model_that_cannot_be_cut_is_tried_once_only():
    model, passes = changed(UNKNOWN["a cap"]), []
    model.model.register_forward_hook(lambda *_: passes.append(1))
    scored(model)
    scored(model)
    assert len(passes) == 3


def test_the_configuration_is_not_believed():
    model = model_of("qwen3")
    expected = plain(model)
    model.config.logit_scale = 0.1  # this architecture does not read it
    assert torch.allclose(scored(model).logp, expected.logp, atol=1e-6)


def test_logits_that_say_nothing_hide_nothing():
    model = model_of("granite")
    with torch.no_grad():
        model.get_output_embeddings().weight.zero_()  # all logits are 0, divided or not
    wanted, got = gradients(model, plain(model), 0.0), gradients(model, scored(model, logits_at_once=V), 0.0)
    assert relative(got["lm_head.weight"], wanted["lm_head.weight"]) < 1e-6


@pytest.mark.parametrize("how", [{}, {"logits_at_once": 1}])
def test_hooks_on_the_output_layer_are_heeded(how):
    micro = policy().model
    ids = torch.tensor([[2, 30, 3, 31, 1]])
    before = response_logprobs(micro, ids, torch.ones_like(ids), 2, 1.0, **how)
    prefer(policy(), 31, 50.0)
    hooked = policy()
    prefer(hooked, 31, 50.0)
    after = response_logprobs(hooked.model, ids, torch.ones_like(ids), 2, 1.0, **how)
    assert before.logp[0, 0] < -1
    assert after.logp[0, 0] > -1e-6
    assert torch.allclose(after.entropy, torch.zeros(1, 2), atol=1e-4)


# Entropy, masks, determinism


def test_the_entropy_has_a_gradient_only_where_it_is_asked_for():
    model = model_of("qwen3")
    assert not scored(model).entropy.requires_grad
    assert not scored(model, logits_at_once=V).entropy.requires_grad
    assert scored(model, entropy_grad=True).entropy.requires_grad
    with torch.no_grad():
        assert not scored(model, entropy_grad=True, logits_at_once=V).entropy.requires_grad


@pytest.fixture(params=["of a CPU", "of a GPU"])
def operation(request, monkeypatch):
    """Statistics are made by the operations of either kind of device, on this CPU."""
    if request.param == "of a GPU":
        monkeypatch.setattr(logprobs, "_in_place", logprobs._on_gpu)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("size", [0.1, 5.0, 80.0])
def test_one_operation_gives_what_log_softmax_gives_and_so_does_its_gradient(dtype, temperature, size, operation):
    generator = torch.Generator().manual_seed(0)
    logits = (size * torch.randn(3, 4, 50, generator=generator)).to(dtype)
    logits[..., 7] = -torch.inf  # impossible
    ids = torch.randint(8, 50, (3, 4), generator=generator)
    upstream = torch.randn(3, 4, generator=generator)
    one, other = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    found = distribution_stats(one, ids, temperature)
    distribution = torch.log_softmax(other.float() / temperature, -1)
    expected = distribution.gather(-1, ids[..., None])[..., 0]
    (found.logp * upstream).sum().backward()
    (expected * upstream).sum().backward()
    assert torch.allclose(found.logp, expected, rtol=1e-6, atol=1e-6)
    assert torch.allclose(found.entropy, torch.special.entr(distribution.exp()).sum(-1), atol=1e-5)
    assert not found.entropy.requires_grad
    assert torch.allclose(
        one.grad.float(), other.grad.float(), rtol=1e-2 if dtype == torch.bfloat16 else 1e-5, atol=1e-6
    )


def test_an_impossible_token_that_carries_no_gradient_spoils_none(operation):
    logits = torch.tensor([[0.0, 1.0, -torch.inf]], requires_grad=True)
    found = distribution_stats(logits, torch.tensor([2]), 1.0)
    found.logp.backward(torch.zeros(1))
    assert found.logp.item() == -torch.inf and found.entropy.isfinite().all()
    assert logits.grad is not None and not logits.grad.any()


def test_a_second_pass_takes_the_values_of_the_first():
    logits, ids, known = torch.randn(5, 9, requires_grad=True), torch.arange(5), list[Tensor]()
    first, second = (distribution_stats(logits, ids, 1.0, known=known) for _ in range(2))
    assert torch.equal(first.logp, second.logp) and torch.equal(first.entropy, second.entropy)
    kept = [value.clone() for value in known]
    known[0].add_(1.0)
    assert torch.equal(distribution_stats(logits, ids, 1.0, known=known).logp, kept[0] + 1.0)


def test_logits_that_are_not_numbers_are_not_hidden(operation):
    stats = distribution_stats(torch.tensor([[0.0, torch.nan]]), torch.tensor([0]), 1.0)
    assert stats.logp.isnan().all() and stats.entropy.isnan().all()


@pytest.mark.parametrize("how", [{}, {"logits_at_once": V}])
def test_tokens_that_are_not_wanted_get_zero_and_cost_nothing(how):
    model, seen = model_of("qwen3"), []
    model.get_output_embeddings().register_forward_hook(
        lambda _layer, _inputs, logits: seen.append(logits.shape[:-1].numel())
    )
    with torch.no_grad():
        found = scored(model, mask=True, **how)
    assert torch.equal(found.logp != 0, MASK)
    assert torch.equal(found.entropy != 0, MASK)
    assert sum(seen[1:]) == MASK.sum()


def test_a_batch_in_which_no_token_is_wanted_has_zero_gradients():
    model = model_of("qwen3")
    found = response_logprobs(model, IDS, ATTENTION, R, 1.0, mask=torch.zeros(3, R, dtype=torch.bool))
    assert not any(grad.any() for grad in gradients(model, found, 0.0).values())


def test_the_same_call_gives_the_same_bytes():
    model = model_of("qwen3")
    runs = []
    for _ in range(2):
        found = scored(model, logits_at_once=5 * V, mask=True)
        runs.append((found, gradients(model, found, 0.0)))
    (one, first), (two, second) = runs
    assert torch.equal(one.logp, two.logp)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_mixture_of_one_token_is_that_token():
    model = model_of("qwen3")
    ids, weights = IDS[:, -R:, None], torch.zeros(3, R, 1)
    weights[1, 2] = 1.0
    assert torch.allclose(scored(model, mixes=Mixes(ids, weights)).logp, scored(model).logp, atol=1e-6)
    ids = ids.clone()
    ids[1, 2] = (ids[1, 2] + 5) % V
    moved = (scored(model, mixes=Mixes(ids, weights)).logp - scored(model).logp).abs() > 1e-6
    assert moved.nonzero()[:, 0].unique().tolist() == [1]
    assert not moved[1, :3].any()
    assert moved[1, 3]
