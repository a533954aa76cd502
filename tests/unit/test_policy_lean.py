"""The lean pass with gradients: it gives what transformers gives, or it is not taken."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peft import LoraConfig
from test_rollout_dense import LLAMA3, YARN, llama, qwen2, qwen3
from torch import Tensor
from transformers import PreTrainedModel

from components.config.policy import LoraSettings
from components.policy import Policy
from components.policy.lean import model, packing, products
from components.policy.lean.model import lean_pass
from components.policy.lean.packing import packed
from components.policy.logprobs import TokenStats, model_inputs, response_logprobs
from components.policy.lora import adapted

MODELS = {
    "qwen3": qwen3,
    "qwen3, tied": lambda: qwen3(tie_word_embeddings=True),
    "qwen2, with biases": qwen2,
    "llama": llama,
    "llama, other angles": lambda: llama(rope_parameters=LLAMA3),
    "qwen3, yarn": lambda: qwen3(rope_parameters=YARN),
    "qwen3, the padding token is one of the text": lambda: qwen3(pad_token_id=Case().ids[0, Case.width - 1].item()),
}
TEMPERATURE = 0.7


class Case:
    """Three groups of two rows with prompts and responses of unlike lengths; one row has a hole, one is not wanted."""

    prompts, responses = (2, 7, 4), ((5, 3), (1, 6), (4, 4))
    width, columns = 7, 6

    def __init__(self) -> None:
        draw = torch.Generator().manual_seed(3)
        rows = [(p, r) for p, both in zip(self.prompts, self.responses, strict=True) for r in both]
        self.group = torch.arange(3).repeat_interleave(2)
        self.ids = torch.randint(3, 272, (6, self.width + self.columns), generator=draw)
        self.attention = torch.zeros_like(self.ids)
        for row, (prompt, response) in enumerate(rows):
            self.attention[row, self.width - prompt : self.width + response] = 1
            self.ids[row, : self.width] = self.ids[row - row % 2, : self.width]
        self.mask = self.attention[:, self.width :].bool()
        self.mask[0, 2] = False
        self.mask[3] = False

    def scored(self, policy: PreTrainedModel, **how: Any) -> TokenStats:
        how = {"mask": self.mask, "group": self.group, "entropy_grad": True, **how}
        return response_logprobs(policy, self.ids, self.attention, self.columns, TEMPERATURE, **how)

    def expected(self, policy: PreTrainedModel) -> TokenStats:
        """The definition, from the model's own forward pass."""
        logits = policy(**model_inputs(policy, self.ids, self.attention)).logits[:, -self.columns - 1 : -1]
        distribution = torch.log_softmax(logits / TEMPERATURE, -1)
        logp = distribution.gather(-1, self.ids[:, -self.columns :, None]).squeeze(-1)
        return TokenStats(logp * self.mask, -(distribution.exp() * distribution).sum(-1) * self.mask)


def gradients(policy: PreTrainedModel, stats: TokenStats, of_entropy: float = 0.3) -> dict[str, Tensor]:
    """Of every parameter that is trained."""
    weights = torch.linspace(-1, 1, stats.logp.numel()).view(stats.logp.shape)
    policy.zero_grad()
    (weights * (stats.logp + of_entropy * stats.entropy)).sum().backward()
    return {name: p.grad.clone() for name, p in policy.named_parameters() if p.requires_grad}


def apart(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).detach().norm() / expected.detach().norm())


def agrees(policy: PreTrainedModel, **how: Any) -> None:
    case = Case()
    policy.requires_grad_(True)
    assert lean_pass(policy) is not None
    found, expected = case.scored(policy, **how), case.expected(policy)
    assert apart(found.logp, expected.logp) < 1e-5
    assert apart(found.entropy, expected.entropy) < 1e-5
    of_entropy = 0.3 if how.get("entropy_grad", True) else 0.0
    wanted, got = gradients(policy, expected, of_entropy), gradients(policy, found, of_entropy)
    assert got.keys() == wanted.keys()
    assert {name: apart(got[name], wanted[name]) < 1e-4 for name in wanted} == dict.fromkeys(wanted, True)


@pytest.mark.parametrize("name", MODELS)
def test_numbers_and_gradients_are_those_of_the_models_own_pass(name):
    agrees(MODELS[name]())


@pytest.mark.parametrize(
    "how",
    [
        {"group": None},
        {"logits_at_once": 2 * 272},
        {"entropy_grad": False},
        {"entropy_grad": False, "logits_at_once": 2 * 272},
    ],
    ids=["a prompt for every row", "logits in pieces", "no gradient of the entropy", "nor that, logits in pieces"],
)
def test_so_they_are(how):
    agrees(qwen3(), **how)


def test_so_they_are_where_attention_is_computed_twice(monkeypatch):
    monkeypatch.setattr(model, "KEPT", 0)
    agrees(qwen3())


def test_so_they_are_with_a_bias_in_the_output_layer():
    policy = qwen3()
    policy.lm_head.bias = torch.nn.Parameter(torch.linspace(-1, 1, 272))
    agrees(policy, entropy_grad=False)
    agrees(policy, entropy_grad=False, logits_at_once=2 * 272)


def test_so_they_are_by_the_fused_attention_of_long_rows(monkeypatch):
    monkeypatch.setattr(packing, "SHORT", 0)
    agrees(qwen3())


def test_so_they_are_where_onednn_cannot_be_had(monkeypatch):
    monkeypatch.setattr(products, "onednn", lambda: False)
    agrees(qwen2())


def test_products_are_those_of_a_linear_layer_with_either_library(monkeypatch):
    values, weight, bias, other = torch.randn(70, 8), torch.randn(12, 8), torch.randn(12), torch.randn(70, 12)
    expected = values.double() @ weight.double().T + bias.double()
    here = products.onednn()
    for library in (here, False):
        monkeypatch.setattr(products, "onednn", lambda library=library: library)
        assert torch.allclose(products.product(values, weight, bias).double(), expected, atol=1e-5)
        assert torch.allclose(products.product_added(values, weight, bias, other).double(), expected + other, atol=1e-5)
        for inputs, outputs in ((8, 12), (12, 8)):
            slope, read = torch.randn(70, outputs), torch.randn(70, inputs)
            gradient = products.weight_gradient(slope, read)
            assert torch.allclose(gradient.double(), slope.T.double() @ read.double(), atol=1e-4)


def test_the_same_call_gives_the_same_bits():
    policy, case = qwen3().requires_grad_(True), Case()
    first, second = (gradients(policy, case.scored(policy)) for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def dropping_out(policy: PreTrainedModel) -> None:
    policy.config.attention_dropout = 0.1
    policy.train()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda policy: policy.to(torch.bfloat16),
        dropping_out,
        lambda policy: policy.gradient_checkpointing_enable(),
        lambda policy: policy.base_model.layers[1].register_forward_pre_hook(lambda *_: None),  # as sharding does
    ],
    ids=["half precision", "dropout", "activations that are computed again", "a hook"],
)
def test_it_is_not_taken_for(spoil):
    policy = qwen3()
    assert lean_pass(policy) is not None
    spoil(policy)
    assert lean_pass(policy) is None


def coarse(policy: PreTrainedModel, **how: Any) -> TokenStats:
    with torch.autocast("cpu", torch.bfloat16):
        assert lean_pass(policy) is not None
        return Case().scored(policy, **how)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "how",
    [{"entropy_grad": False}, {"entropy_grad": False, "logits_at_once": 2 * 272}, {}],
    ids=["log-probabilities", "in pieces", "and entropies"],
)
def test_under_autocast_its_products_are_in_bfloat16_and_gradients_point_the_same_way(name, how):
    policy = MODELS[name]().requires_grad_(True)
    exact, found = Case().scored(policy, **how), coarse(policy, **how)
    of_entropy = 0.0 if how else 0.3
    wanted, got = gradients(policy, exact, of_entropy), gradients(policy, found, of_entropy)
    assert found.logp.dtype == torch.float32
    assert 0 < apart(found.logp, exact.logp) < 5e-3
    assert {gradient.dtype for gradient in got.values()} == {torch.float32}
    whole, expected = (torch.cat([part.flatten() for part in side.values()]) for side in (got, wanted))
    assert torch.cosine_similarity(whole, expected, 0) > 0.9995
    assert apart(whole, expected) < 0.03


def test_under_autocast_it_is_nearer_than_the_models_own_pass():
    policy = qwen3()
    exact = Case().scored(policy).logp
    with torch.autocast("cpu", torch.bfloat16):
        own = Case().expected(policy).logp
    assert apart(coarse(policy).logp, exact) < apart(own, exact)


def test_under_autocast_the_same_weights_give_a_ratio_of_exactly_one():
    policy = qwen3().requires_grad_(True)
    with torch.no_grad():
        before = coarse(policy).logp
    assert torch.equal(coarse(policy, entropy_grad=False).logp, before)


def test_it_is_not_taken_in_a_precision_that_it_does_not_know():
    policy = qwen3()
    with torch.autocast("cpu", torch.float16):
        assert lean_pass(policy) is None


def test_it_is_not_taken_for_a_model_that_fails_the_trial(monkeypatch):
    policy = qwen3()
    monkeypatch.setattr(model, "gated", lambda both, layer, to: 1.1 * to)
    assert lean_pass(policy) is None


# Adapters


def with_adapter(policy: PreTrainedModel, **changed: Any) -> PreTrainedModel:
    """The model with an adapter that has learned something, of a scale that is not 1."""
    own = adapted(Policy(policy, cast(Any, None)), LoraSettings(**{"rank": 3, "alpha": 5, **changed}), seed=0)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in own.trainable().values():
            parameter.copy_(0.1 * torch.randn(parameter.shape, generator=draw))
    return own.model


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("targets", ["all-linear", ("q_proj", "v_proj"), ("up_proj", "down_proj", "o_proj")])
def test_with_an_adapter_numbers_and_gradients_are_those_of_pefts_modules(name, targets):
    policy, case = with_adapter(MODELS[name](), targets=targets), Case()
    assert lean_pass(policy) is not None
    found, expected = case.scored(policy), case.expected(policy)
    assert apart(found.logp, expected.logp) < 1e-5
    wanted, got = gradients(policy, expected), gradients(policy, found)
    assert got.keys() == wanted.keys() == {name for name, p in policy.named_parameters() if ".lora_" in name}
    assert {name: apart(got[name], wanted[name]) < 1e-4 for name in wanted} == dict.fromkeys(wanted, True)


def test_in_training_mode_it_is_taken_with_an_adapter_that_has_no_dropout():
    assert lean_pass(with_adapter(qwen3()).train()) is not None
    assert lean_pass(with_adapter(qwen3(), dropout=0.1)) is not None
    assert lean_pass(with_adapter(qwen3(), dropout=0.1).train()) is None


@pytest.mark.parametrize("method", ["disable_adapters", "merge"])
def test_it_is_not_taken_for_an_adapter_that_is_off_or_merged(method):
    policy = with_adapter(qwen3())
    if method == "merge":
        policy.base_model.layers[1].mlp.down_proj.merge()
    else:
        policy.disable_adapters()
    assert lean_pass(policy) is None


@pytest.mark.parametrize("config", [{"use_dora": True}, {"lora_bias": True}], ids=["DoRA", "biases"])
def test_it_is_not_taken_for_other_kinds_of_adapters(config):
    policy = llama()
    policy.add_adapter(LoraConfig(r=2, target_modules=["o_proj"], **config))
    assert lean_pass(policy) is None


def test_under_autocast_an_adapter_gets_gradients_that_point_the_same_way():
    policy = with_adapter(qwen3())
    exact, found = Case().scored(policy), coarse(policy)
    whole, expected = (
        torch.cat([part.flatten() for part in gradients(policy, stats).values()]) for stats in (found, exact)
    )
    assert 0 < apart(found.logp, exact.logp) < 5e-3
    assert torch.cosine_similarity(whole, expected, 0) > 0.9995


def test_what_is_not_wanted_of_any_row_is_scored_as_nothing():
    policy, case = qwen3(), Case()
    assert not case.scored(policy, mask=torch.zeros_like(case.mask)).logp.any()


@given(data=st.data(), rows=st.integers(1, 6), prompt=st.integers(1, 5), columns=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_a_packed_batch_reads_every_prompt_once_and_no_token_that_nothing_hangs_on(data, rows, prompt, columns):
    group = torch.tensor(data.draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows)))
    lengths = data.draw(st.lists(st.integers(1, columns), min_size=rows, max_size=rows))
    ids = torch.arange(rows * (prompt + columns)).view(rows, -1)
    attention_mask = torch.ones_like(ids)
    for row, length in enumerate(lengths):
        attention_mask[row, prompt + length :] = 0
    mask = attention_mask[:, prompt:].bool()
    found = packed(ids, attention_mask, mask, group)
    assert len(found.prompts.places) == prompt * len(group.unique())
    assert len(found.rows.places) == sum(length - 1 for length in lengths)
    read = len(found.prompts.places) + len(found.rows.places)
    assert len(found.ids) % 64 == 0 and len(found.ids) - read < 64
    for before, (row, column) in zip(found.before.tolist(), mask.nonzero().tolist(), strict=True):
        assert found.positions[before] == prompt + column - 1
        if column:
            assert found.ids[before] == ids[row, prompt + column - 1]
        else:
            same = int((group == group[row]).nonzero()[0])
            assert found.ids[before] == ids[same, prompt - 1]
