"""Mixture of experts: a tiny policy that has them, which experts tokens take, and sending them there again (R3)."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from factories import TINY, group, policy, prompts, settings
from pydantic import ValidationError
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    DeepseekV3Config,
    GptOssConfig,
    GraniteMoeConfig,
    MixtralConfig,
    OlmoeConfig,
    PreTrainedModel,
    Qwen3MoeForCausalLM,
)

from components.config.policy import CheckpointModel, PolicySettings, TinyModel
from components.config.rollout import TorchEngine as TorchEngineSettings
from components.errors import InputError
from components.health.signals import SIGNALS
from components.learner.base import IN_FORCE
from components.learner.batch import Batch, build_batch
from components.learner.build import build_learner
from components.policy import Policy, TokenStats, load_policy, response_logprobs
from components.policy.routing import (
    Router,
    Routing,
    joined,
    pad_routes,
    recorded,
    routers,
    routing_agreement,
    share_of_all,
    share_of_chosen,
    weight_rule,
)
from components.policy.tiny import build_model
from components.rollout import Sampling
from components.rollout.torch_engine import TorchEngine
from components.types import Completion, Group

EXPERTS = TINY.model_copy(update={"layers": 2, "experts": 4, "experts_per_token": 2})
IDS = torch.randint(4, 250, (3, 9), generator=torch.Generator().manual_seed(0))
ATTENTION = torch.ones_like(IDS)
ATTENTION[0, :2] = 0
R = 5


@cache
def _base() -> Policy:
    tokenizer = policy().tokenizer
    model = build_model(EXPERTS, tokenizer, seed=0)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():  # so large that routing and the next token depend on the whole prompt
        for weights in (p for p in model.parameters() if p.dim() > 1):
            weights.copy_(0.3 * torch.randn(weights.shape, generator=generator))
    return Policy(model.eval(), tokenizer)


def moe() -> Policy:
    """The micro policy with four experts in each of two layers, two of them for every token."""
    base = _base()
    return Policy(copy.deepcopy(base.model), base.tokenizer)


@torch.no_grad()
def chosen(model: PreTrainedModel) -> Tensor:
    """Where the model itself sends the tokens of `IDS`, ``[B, T, layers, k]``."""
    with recorded(model) as router:
        model(IDS, attention_mask=ATTENTION)
        assert router is not None
        return router.take(len(IDS))


def others(routes: Tensor) -> Tensor:
    """The two of four experts that were not chosen."""
    rows = [[e for e in range(4) if e not in row][:2] for row in routes.view(-1, 2).tolist()]
    return torch.tensor(rows, dtype=routes.dtype).view(routes.shape)


def scored(model: PreTrainedModel, routes: Tensor | None = None, replay: bool = True) -> TokenStats:
    routing = None if routes is None else Routing(routes, replay)
    return response_logprobs(model, IDS, ATTENTION, R, 1.0, routing=routing)


# The tiny model with experts


def test_a_tiny_policy_can_have_experts_and_comes_back_from_its_folder_equal(tmp_path: Path):
    micro = moe()
    assert isinstance(micro.model, Qwen3MoeForCausalLM)
    micro.save(tmp_path)
    loaded = load_policy(tmp_path, PolicySettings(model=CheckpointModel(kind="checkpoint", path=tmp_path)))
    assert loaded.weights().keys() == micro.weights().keys()
    assert all(torch.equal(weights, micro.weights()[name]) for name, weights in loaded.weights().items())
    assert torch.equal(scored(loaded.model).logp, scored(micro.model).logp)


def test_the_sizes_of_the_settings_are_those_of_the_model():
    config = moe().model.config
    assert (config.num_experts, config.num_experts_per_tok, config.moe_intermediate_size) == (4, 2, 32)
    assert config.norm_topk_prob
    assert not config.output_router_logits  # no load-balancing loss
    assert len(routers(moe().model)) == 2


@pytest.mark.parametrize(("experts", "per_token", "fits"), [(0, 2, True), (4, 2, True), (2, 2, False), (1, 2, False)])
def test_there_must_be_experts_to_choose_from(experts, per_token, fits):
    sizes = {"experts": experts, "experts_per_token": per_token}
    if fits:
        assert TinyModel(**sizes).experts == experts
    else:
        with pytest.raises(ValidationError, match="must be more than experts_per_token"):
            TinyModel(**sizes)


def test_a_policy_with_experts_trains_and_its_routers_learn():
    micro = moe()
    before = {name: w.clone() for name, w in micro.weights().items()}
    learner = build_learner(micro, settings(learner={"updates_per_step": 1, "warmup": 0}))
    signals = learner.step(ready(micro, [group([1, 0, 0]), group([0, 1, 1])]), seed=0)
    assert signals["grad_norm"] > 0
    moved = {name for name, weights in micro.weights().items() if not torch.equal(weights, before[name])}
    assert {f"model.layers.{layer}.mlp.gate.weight" for layer in (0, 1)} <= moved


def batch_stats(micro: Policy, batch: Batch, routing: Routing | None = None) -> TokenStats:
    shape = batch.input_ids, batch.attention_mask, batch.responses
    return response_logprobs(micro.model, *shape, 1.0, routing=routing)


def ready(micro: Policy, groups: list[Group]) -> Batch:
    """A batch with advantages, and log-probabilities of the sampler that are the policy's own."""
    batch = build_batch(groups, micro.pad_id)
    with torch.no_grad():
        logp = batch_stats(micro, batch).logp
    signs = torch.where(batch.member % 2 == 0, 1.0, -1.0)[:, None]
    return replace(batch, rollout_logp=logp, advantages=signs * batch.response_mask)


# Routing agreement


@pytest.mark.parametrize(
    ("recorded_sets", "own", "share"),
    [
        ([[0, 1], [2, 3]], [[1, 0], [2, 3]], 1.0),  # sets, not orders
        ([[0, 1], [2, 3]], [[0, 2], [3, 2]], 0.5),
        ([[0, 1], [2, 3]], [[0, 2], [1, 3]], 0.0),
        ([[0, 1], [-1, -1]], [[0, 1], [1, 3]], 1.0),  # of what is known
        ([[-1, -1], [-1, -1]], [[0, 1], [1, 3]], float("nan")),
    ],
)
def test_agreement_is_the_share_of_layers_with_the_same_experts(recorded_sets, own, share):
    found = routing_agreement(torch.tensor(recorded_sets), torch.tensor(own)).item()
    assert found == pytest.approx(share, nan_ok=True)


def test_a_model_agrees_with_itself_and_not_with_the_others():
    model = moe().model
    assert torch.equal(scored(model, chosen(model), replay=False).routing, torch.ones(3, R))
    assert torch.equal(scored(model, others(chosen(model)), replay=False).routing, torch.zeros(3, R))


def test_column_r_is_about_the_token_before_response_token_r():
    model = moe().model
    routes = chosen(model)
    routes[1, -R - 1, 0] = others(routes)[1, -R - 1, 0]  # the last token of the prompt
    routes[1, -1] = others(routes)[1, -1]  # nothing follows the last token
    expected = torch.ones(3, R)
    expected[1, 0] = 0.5
    assert torch.equal(scored(model, routes, replay=False).routing, expected)


# Replay


def test_following_the_models_own_choice_changes_nothing():
    model = moe().model
    assert torch.equal(scored(model, chosen(model)).logp, scored(model).logp)
    assert torch.equal(scored(model, chosen(model).flip(-1)).logp, scored(model).logp)


def test_every_token_goes_where_the_sampler_sent_it():
    model = moe().model
    routes = others(chosen(model))
    routes[2, 4] = -1  # unknown: goes where it likes
    went: list[Tensor] = []
    for name, module in model.named_modules():
        if name.endswith("mlp.experts"):
            module.register_forward_pre_hook(lambda _experts, args: went.append(args[1].view(3, 9, 2)))
    found = scored(model, routes)
    used, known = torch.stack(went, 2), (routes != -1).all(-1)
    assert torch.equal(used[known].sort(-1).values, routes[known].long().sort(-1).values)
    assert torch.equal(used[2, 4, 0], chosen(model)[2, 4, 0].long())
    assert not torch.allclose(found.logp, scored(model).logp, atol=1e-3)


def test_comparing_alone_changes_nothing():
    model = moe().model
    assert torch.equal(scored(model, others(chosen(model)), replay=False).logp, scored(model).logp)


def test_the_routers_keep_their_gradient():
    model = moe().model
    scored(model, others(chosen(model))).logp.sum().backward()
    assert all(router.weight.grad.abs().sum() > 0 for router in routers(model))


def test_weights_come_from_the_routers_own_logits():
    """Probabilities .1 .2 .3 .4, sent to the first and the last: .1 and .4 of .5."""
    logits = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log()
    own = torch.tensor([[3, 2]])
    router = Router(1, Routing(torch.tensor([[[[0, 3]]]]), replay=True))
    _, weights, experts = router.choose(0, torch.nn.Identity(), (), (logits, torch.tensor([[4 / 7, 3 / 7]]), own))
    assert experts.tolist() == [[0, 3]]
    assert torch.allclose(weights, torch.tensor([[0.2, 0.8]]))


@pytest.mark.parametrize(("rule", "weights"), [(share_of_chosen, [4 / 7, 3 / 7]), (share_of_all, [0.4, 0.3])])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_rule_of_a_router_is_found_by_trying(rule, weights, dtype):
    logits, own = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log(), torch.tensor([[3, 2]])
    assert weight_rule(logits, torch.tensor([weights]).to(dtype), own, "Router") is rule


def test_a_router_that_weighs_in_another_way_is_refused():
    logits, own = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log(), torch.tensor([[3, 2]])
    with pytest.raises(InputError, match="replayed in SigmoidRouter"):
        weight_rule(logits, logits.sigmoid().gather(-1, own), own, "SigmoidRouter")


SHAPE: dict[str, Any] = {
    "vocab_size": 260,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
    "eos_token_id": 1,
    "pad_token_id": 0,
    "num_experts_per_tok": 2,
}
OTHERS = {
    "mixtral": MixtralConfig(**SHAPE, num_local_experts=4),
    "olmoe": OlmoeConfig(**SHAPE, num_experts=4),
    "granite": GraniteMoeConfig(**SHAPE, num_local_experts=4),
    "gpt_oss": GptOssConfig(**SHAPE, num_local_experts=4, head_dim=16),
}


@pytest.mark.parametrize("config", OTHERS.values(), ids=OTHERS)
def test_other_architectures_with_experts_can_be_replayed_too(config):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    routes = chosen(model)
    assert routes.shape == (3, 9, 2, 2)
    assert torch.allclose(scored(model, routes).logp, scored(model).logp, atol=1e-6)
    assert torch.equal(scored(model, others(routes)).routing, torch.zeros(3, R))


def test_an_architecture_whose_routers_are_not_understood_is_refused():
    sizes = {"n_routed_experts": 4, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 0}
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(DeepseekV3Config(**{**SHAPE, "num_key_value_heads": 2}, **sizes)).eval()
    with pytest.raises(InputError, match="cannot be replayed"):
        scored(model, torch.zeros(3, 9, 2, 2, dtype=torch.int16))


def test_a_dense_policy_has_no_routes_and_replay_does_nothing_to_it():
    dense = policy().model
    with recorded(dense) as router:
        assert router is None
    found = scored(dense, torch.zeros(3, 9, 1, 2, dtype=torch.int16))
    assert found.routing is None
    assert torch.equal(found.logp, scored(dense).logp)


def test_routes_of_another_model_are_refused():
    with pytest.raises(ValueError, match="3 layers do not fit a model with experts in 2"):
        scored(moe().model, torch.zeros(3, 9, 3, 2, dtype=torch.int16))


def test_replay_under_gradient_checkpointing_is_refused():
    model = moe().model
    routes = chosen(model)
    model.gradient_checkpointing_enable()
    with pytest.raises(ValueError, match="gradient checkpointing"):
        scored(model, routes)


# From the engine to the learner


def sampled(micro: Policy, **options: Any) -> list[tuple[Completion, ...]]:
    engine = TorchEngine(micro, TorchEngineSettings(**options))
    ids = [micro.encode_prompt(p.text) for p in prompts(3)]
    return engine.generate(ids, Sampling(n=4, max_new_tokens=10, temperature=1.0, seed=0))


def grouped(micro: Policy, completions: list[tuple[Completion, ...]]) -> list[Group]:
    rows = []
    for p, row in zip(prompts(3), completions, strict=True):
        scores = group([i % 2 for i in range(4)]).scores
        rows.append(Group(p, micro.encode_prompt(p.text), row, scores))
    return rows


def talkative() -> Policy:
    """Ends an answer at different places."""
    micro = moe()
    bonus = torch.nn.functional.one_hot(torch.tensor(micro.eos_id), len(micro.tokenizer)) * 6.0
    micro.model.get_output_embeddings().register_forward_hook(lambda _m, _i, logits: logits + bonus)
    return micro


def test_recording_changes_no_completion():
    micro = talkative()
    assert sampled(micro, record_routes=True) == sampled(micro)
    assert all(c.routes is None for row in sampled(micro) for c in row)
    assert all(c.routes is None for row in sampled(policy(), record_routes=True) for c in row)


def test_the_engines_routes_are_those_of_one_pass_over_prompt_and_response():
    micro = talkative()
    found = sampled(micro, record_routes=True)
    assert len({len(c.token_ids) for row in found for c in row}) > 3  # rows have left the batch at different times
    for own, row in zip(grouped(micro, found), found, strict=True):
        for completion in row:
            ids = torch.tensor([[*own.prompt_ids, *completion.token_ids]])
            with recorded(micro.model) as router, torch.no_grad():
                micro.model(ids)
                expected = router.take(1)[0, :-1].sort(-1).values
            assert np.array_equal(np.sort(completion.routes, -1), expected.numpy())


def test_routes_reach_the_batch_where_their_tokens_are():
    micro = talkative()
    batch = build_batch(grouped(micro, sampled(micro, record_routes=True)), micro.pad_id)
    known = (batch.routes != -1).all(-1).all(-1)
    read = batch.attention_mask.bool()
    last = read.long().cumsum(1) == read.sum(1, keepdim=True)
    assert torch.equal(known, read & ~last)
    assert len({part.input_ids.shape[1] for part in batch.micro_batches(60)}) > 1
    for part in batch.micro_batches(60):
        stats = batch_stats(micro, part, Routing(part.routes, replay=False))
        assert (stats.routing[part.response_mask] == 1).all()


def test_in_half_precision_routes_flip_and_replay_brings_the_learner_closer():
    micro = moe()
    batch = build_batch(grouped(micro, sampled(micro, record_routes=True, precision="bfloat16")), micro.pad_id)
    gaps, agreement = [], []
    for replay in (False, True):
        with torch.no_grad():
            stats = batch_stats(micro, batch, Routing(batch.routes, replay))
        gaps.append((stats.logp - batch.rollout_logp)[batch.response_mask].abs().mean().item())
        agreement.append(stats.routing[batch.response_mask].mean().item())
    assert 0.8 < agreement[0] < 1
    assert gaps[1] < 0.7 * gaps[0]


def test_the_learner_reports_the_agreement():
    micro = moe()
    batch = ready(micro, grouped(micro, sampled(micro, record_routes=True)))
    signals = {}
    for replay in (False, True):
        learner = build_learner(moe(), settings(learner={"updates_per_step": 1, "routing_replay": replay}, **RECORD))
        signals[replay] = learner.step(batch, seed=0)
    assert signals[False]["routing_agreement"] == signals[True]["routing_agreement"] == 1.0
    assert set(signals[True]) - {IN_FORCE} <= set(SIGNALS)
    dense = build_learner(moe(), settings()).step(replace(batch, routes=None), seed=0)
    assert "routing_agreement" not in dense


RECORD = {"rollout": {"engine": {"record_routes": True}}}


def test_replay_in_the_learner_is_what_its_setting_says():
    micro = moe()
    batch = ready(micro, grouped(micro, sampled(micro, record_routes=True)))
    wrong = replace(batch, routes=torch.where(batch.routes < 0, batch.routes, others(batch.routes.clamp(min=0))))
    own, free, forced = (
        build_learner(moe(), settings(learner={"routing_replay": replay}, **RECORD)).logprobs(given)
        for replay, given in ((False, batch), (False, wrong), (True, wrong))
    )
    assert torch.equal(free, own)
    assert not torch.allclose(forced, own, atol=1e-2)


def test_replay_without_recording_is_refused():
    with pytest.raises(ValidationError, match=r"set rollout\.engine\.record_routes"):
        settings(learner={"routing_replay": True})


def test_routes_are_padded_like_their_tokens():
    first, second = np.full((3, 1, 2), 7, np.int16), np.full((4, 1, 2), 9, np.int16)
    padded = pad_routes([first, None, second], prompts=[2, 3, 3], columns=6)
    assert padded[..., 0, 0].tolist() == [[-1, 7, 7, 7, -1, -1], [-1] * 6, [9, 9, 9, 9, -1, -1]]
    assert pad_routes([None, None], prompts=[1, 1], columns=3) is None


def test_over_several_turns_a_token_keeps_its_first_route():
    first, second = np.zeros((2, 1, 2), np.int16), np.ones((5, 1, 2), np.int16)
    assert joined(first, second)[:, 0, 0].tolist() == [0, 0, 1, 1, 1]
    assert joined(None, second) is second
    assert joined(first, None) is None
