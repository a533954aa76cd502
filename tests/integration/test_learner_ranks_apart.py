"""Learners of several ranks with another model, number of ranks or precision: each has a group of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import Qwen3Config, Qwen3ForCausalLM

from components.config.policy import CheckpointModel, PolicySettings
from components.learner.build import build_learner
from components.learner.state import read_tensors
from components.policy import Policy, load_policy
from components.policy.beginning import beginning
from components.policy.lora import adapted
from components.policy.tiny import build_model
from components.seeds import derive

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from factories import TINY, policy, settings

from tests.integration.ranks import KINDS, ZERO_3, alone, batch, difference, how, learning, near, saved, steps
from tests.tiers import slow_but

pytestmark = pytest.mark.integration
LORA = {"rank": 4, "alpha": 8}


@pytest.mark.parametrize("kind", slow_but(KINDS, "fsdp2"))
def test_a_rank_that_is_alone_follows_too_where_rows_without_an_advantage_are_scored_only(kind, tmp_path):
    chosen = how(ranks=1, **KINDS[kind]).model_copy(update={"objective": settings().objective})
    one = build_learner(policy(), how().model_copy(update={"objective": chosen.objective}))
    batches = [replace(b, advantages=b.advantages * (torch.arange(len(b)) % 2)[:, None]) for b in map(batch, range(4))]
    with learning(chosen, tmp_path) as learner:
        curves = [[each.step(b, seed=7) for b in batches] for each in (learner, one)]
        assert near(*curves)
        assert difference(learner.weights(), one.weights()) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("tied", [True, False])
def test_ranks_with_other_numbers_of_tokens_cut_a_spread_output_layer_into_as_many_pieces(tied, tmp_path):
    """1e5 elements and more are gathered for every use, at which the ranks wait for each other."""

    def large() -> Policy:
        shape = {"vocab_size": 1600, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "head_dim": 16}
        shape |= {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64}
        torch.manual_seed(0)
        return Policy(Qwen3ForCausalLM(Qwen3Config(**shape, tie_word_embeddings=tied)), policy().tokenizer)

    one, mask = build_learner(large(), how()), batch(0).response_mask
    with learning(how(**ZERO_3, logits_at_once=4 * 1600), tmp_path, large()) as learner:
        assert torch.allclose(learner.logprobs(batch(0))[mask], one.logprobs(batch(0))[mask], atol=1e-5)
        assert near(steps(learner, range(5)), steps(one, range(5)))
        assert difference(learner.weights(), one.weights()) < 1e-5


FORMS: dict[str, dict[str, Any]] = {
    "": {},
    "bf16": {"compute_dtype": "bfloat16", "activation_checkpointing": True},
    "lora": {"lora": LORA},
}


def goes_on(forms: Sequence[tuple[dict[str, Any], int]], folder: Path, form: str) -> None:
    """Two steps with each of several learners, each from the state of the one before, and its ranks; compared with one
    process. Passes in bfloat16 round otherwise wherever they are cut, so of them the states are compared: what is
    read is written again as it was."""

    def begin() -> Policy:
        return adapted(policy(), chosen.policy.lora, derive(chosen.seed, "lora"))

    chosen = how(**FORMS[form])
    one, curve, state, weights = build_learner(begin(), chosen), [], None, {}
    for number, (kind, ranks) in enumerate(forms):
        chosen = how(ranks=ranks, **kind, **FORMS[form])
        with learning(chosen, folder / f"{number}", begin()) as learner:
            if state is not None:
                learner.load(state)
                again = saved(learner, folder / f"again-{number}")
                assert difference(read_tensors(again / "learner"), read_tensors(state / "learner")) == 0
                shards = [path.name for path in sorted((again / "learner").iterdir())]
                assert shards == [f"shard-{rank:05d}-of-{ranks:05d}.safetensors" for rank in range(1, ranks + 1)]
            curve += steps(learner, [2 * number, 2 * number + 1])
            state, weights = saved(learner, folder / f"state-{number}"), dict(learner.weights())
    if form != "bf16":
        assert near(curve, steps(one, range(2 * len(forms))))
        assert difference(weights, one.weights()) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_goes_on_with_another_number_of_ranks(kind, form, tmp_path):
    goes_on([(KINDS[kind], ranks) for ranks in (2, 3, 1)], tmp_path, form)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_run_goes_on_with_another_sharding_and_in_one_process(form, tmp_path):
    goes_on([({}, 1), (KINDS["zero-1"], 2), (KINDS["fsdp2"], 3), (KINDS["zero-3"], 2), ({}, 1)], tmp_path, form)


@pytest.mark.slow
def test_a_mixture_of_experts_in_bfloat16_is_spread_too_and_handed_over_in_its_own_precision(tmp_path):
    def mixture() -> Policy:
        shape = TINY.model_copy(update={"experts": 4, "layers": 2})
        return Policy(build_model(shape, policy().tokenizer, seed=0).bfloat16(), policy().tokenizer)

    chosen = how(**ZERO_3)
    chosen = chosen.model_copy(update={"policy": chosen.policy.model_copy(update={"dtype": "bfloat16"})})
    mixture().save(tmp_path / "checkpoint")
    exact = load_policy(tmp_path / "checkpoint", PolicySettings())
    expected = steps(build_learner(exact, how()), range(3))
    with learning(chosen, tmp_path, mixture()) as learner:
        assert near(steps(learner, range(3)), expected)
        weights = dict(learner.weights())
    assert {weight.dtype for weight in weights.values()} == {torch.bfloat16}
    assert weights.keys() == mixture().weights().keys()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_passes_keep_float32_state_and_go_on_to_the_bit(kind, tmp_path):
    chosen = how(**KINDS[kind], compute_dtype="bfloat16", activation_checkpointing=True)
    exact = steps(alone(), range(4))
    with learning(chosen, tmp_path) as learner:
        curve = steps(learner, [0, 1])
        folder = saved(learner, tmp_path / "saved")
        curve += steps(learner, [2, 3])
        weights = dict(learner.weights())
        assert steps(learner, [5], limit=1e-6)[0]["updates_skipped"] == 2
        assert difference(learner.weights(), weights) == 0
        learner.load(folder)
        assert steps(learner, [2, 3]) == curve[2:]
        assert difference(learner.weights(), weights) == 0
    assert [s["loss"] for s in curve] == pytest.approx([s["loss"] for s in exact], rel=0.05)
    assert [s["grad_norm"] for s in curve] == pytest.approx([s["grad_norm"] for s in exact], rel=0.1)
    assert abs(curve[0]["loss"] - exact[0]["loss"]) > 1e-6 * abs(exact[0]["loss"]), "the passes are those of float32"
    state = read_tensors(folder / "learner")
    assert {tensor.dtype for tensor in state.values()} == {torch.float32}
    assert any(not torch.equal(w, w.bfloat16().float()) for w in state.values())  # finer than what the passes read


@pytest.mark.parametrize("kind", slow_but(KINDS, "fsdp2"))
@pytest.mark.slow
def test_an_adapter_is_shared_out_over_ranks_too(kind, tmp_path):
    chosen = how(**KINDS[kind], lora=LORA)
    adapter = chosen.policy.lora, derive(chosen.seed, "lora")
    one = build_learner(adapted(policy(), *adapter), how(lora=LORA))
    with learning(chosen, tmp_path / "ranks", adapted(policy(), *adapter)) as learner:
        assert near(steps(learner, [0, 1, 2]), steps(one, [0, 1, 2]))
        assert difference(learner.weights(), one.weights()) < 1e-5
        assert learner.weights().keys() == policy().weights().keys()
        folder = saved(learner, tmp_path / "saved")
        expected, weights = steps(learner, [3]), dict(learner.weights())
        learner.load(folder)
        assert difference(learner.weights(), learner.weights_at(folder)) == 0
        assert steps(learner, [3]) == expected
        assert difference(learner.weights(), weights) == 0
        learner.save_policy(tmp_path)
    state = read_tensors(folder / "learner")
    assert all("lora_" in name for name in state)
    assert difference(load_file(tmp_path / "model.safetensors"), weights) == 0
    assert (tmp_path / "adapter" / "adapter_model.safetensors").exists()


@pytest.mark.parametrize("form", slow_but(["", "bf16", "lora"], "bf16"))
@pytest.mark.parametrize("kind", slow_but(KINDS, "fsdp2"))
def test_ranks_begin_from_a_checkpoint_whose_weights_no_process_has_whole_and_keep_it_as_the_reference(
    kind, form, tmp_path
):
    chosen = how(**KINDS[kind], **FORMS[form])
    policy().save(tmp_path / "checkpoint")
    chosen = chosen.model_copy(update={"policy": chosen.policy.model_copy(update={"model": checkpoint(tmp_path)})})
    hollow, weights = beginning(tmp_path / "checkpoint", chosen, apart=True)
    own, _ = beginning(tmp_path / "checkpoint", chosen, apart=False)
    one, mask = build_learner(own, chosen.model_copy(update={"learner": how().learner}), reference=True), batch(0)
    before = one.logprobs(batch(0))
    with learning(chosen, tmp_path / "ranks", hollow, weights=weights, reference=True) as learner:
        near_to = {"atol": 0.1 if form == "bf16" else 1e-5}
        assert torch.allclose(learner.reference(batch(0)), before, **near_to)
        assert near(steps(learner, [0, 1, 2]), steps(one, [0, 1, 2])) or form == "bf16"
        assert torch.allclose(learner.reference(batch(0)), before, **near_to)
        moved = learner.logprobs(batch(0))
        assert (moved - before)[mask.response_mask].abs().max() > 1e-3
        assert torch.equal(learner.logprobs(batch(0)), moved), "scoring the reference leaves the policy as it is"
        assert learner.broken() == 0
        if form != "bf16":
            assert difference(learner.weights(), one.weights()) < 1e-5


def checkpoint(folder: Path) -> CheckpointModel:
    return CheckpointModel(kind="checkpoint", path=folder / "checkpoint")
