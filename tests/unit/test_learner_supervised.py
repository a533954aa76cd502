"""The supervised learner: how ranks share an update, and where the reference comes from. See tests/integration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from factories import gpt2, policy, prompts, settings
from test_dpo_trainer import pairs

from components.config import load
from components.config.dpo import DpoSettings
from components.config.policy import SftSettings
from components.config.training import LearnerSettings
from components.dpo.pairs import Pair
from components.dpo.trainer import Preference
from components.learner import supervised_leader
from components.learner.ranks import ALONE, Ranks
from components.learner.supervised import SupervisedLearner
from components.learner.supervised_leader import SupervisedLeader, alone, builder_of, has_ranks, learner_settings
from components.policy import Policy
from components.sft.trainer import CrossEntropy, Row, encode
from tests.code_graph import ROOT

SFT, DPO = SftSettings(steps=4, lr=1e-2), DpoSettings(steps=4, beta=0.5, micro_batch_tokens=64)


def sft(own: Policy, ranks: Ranks = ALONE) -> SupervisedLearner[Row]:
    return SupervisedLearner(own, CrossEntropy(SFT, own.pad_id), LearnerSettings(), ranks=ranks)


def dpo(own: Policy, ranks: Ranks = ALONE) -> SupervisedLearner[Pair]:
    return SupervisedLearner(own, Preference(DPO, own.pad_id), LearnerSettings(), ranks=ranks)


def rows(count: int) -> list[Row]:
    return [encode(policy(), prompt, None) for prompt in prompts(count)]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_figures_of_all_ranks_add_up_to_those_of_one_process(count):
    shares = [sft(policy(), Ranks(rank, 3)).measure(rows(count))["loss"] for rank in range(3)]
    assert sum(shares) == pytest.approx(sft(policy()).measure(rows(count))["loss"], rel=1e-6)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_example_is_in_one_pass_of_one_rank_and_all_ranks_make_as_many(count):
    some = pairs(policy(), count)
    passes = [dpo(policy(), Ranks(rank, 3))._passes(some) for rank in range(3)]
    assert sorted(number for own in passes for numbers, _ in own for number in numbers) == list(range(count))
    assert len({len(own) for own in passes}) == 1


def test_an_update_of_which_a_rank_has_no_row_gives_it_a_gradient_of_0():
    own = policy()
    norm = sft(own, Ranks(1, 2)).step(rows(1), lr=1e-2, seed=0)["grad_norm"]
    assert norm == 0


def test_ranks_draw_different_dropout_masks_and_rank_0_those_of_one_process():
    def drawn(ranks: Ranks) -> list[float]:
        sft(gpt2(), ranks).step(rows(1), lr=1e-2, seed=7)
        return torch.rand(3).tolist()

    one, first, second = (drawn(ranks) for ranks in (ALONE, Ranks(0, 2), Ranks(1, 2)))
    assert one == first != second


class Table(SupervisedLeader[Pair]):
    """The leader of a learner in this process."""

    def __init__(self, own: SupervisedLearner[Pair]) -> None:
        self._own = own

    def _call(self, name: str, *arguments: Any) -> Any:
        return getattr(self._own, name)(*arguments)


def test_a_reference_that_was_scored_beforehand_is_that_of_a_frozen_copy(monkeypatch):
    monkeypatch.setattr(supervised_leader, "AT_ONCE", 2)
    learner, some = dpo(policy()), pairs(policy())
    frozen, table = learner.reference(some), Table(learner).reference(some)
    learner.step(some, lr=1e-2, seed=0, reference=frozen(some))

    def answers(found: torch.Tensor, of: Sequence[Pair]) -> list[torch.Tensor]:
        return [row[:, : len(pair.chosen.token_ids)] for row, pair in zip(found, of, strict=True)]

    for mixed in (some[4:] + some[:1], some[1:2]):
        pairwise = zip(answers(frozen(mixed), mixed), answers(table(mixed), mixed), strict=True)
        assert all(torch.allclose(one, other, atol=1e-5) for one, other in pairwise)


def test_a_stage_that_is_not_sent_to_the_cluster_has_one_process():
    assert not has_ranks(load(ROOT / "configs/kubernetes.yaml"))
    assert has_ranks(load(ROOT / "configs/local-processes.yaml"))


@pytest.mark.parametrize("make", [policy, gpt2])
@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_activations_that_are_computed_again_change_no_bit(kind, make, monkeypatch):
    # Where they are, the model computes by its own pass.
    monkeypatch.setattr("components.policy.logprobs.lean_pass", lambda _: None)

    def steps(again: bool) -> tuple[list[dict[str, float]], int]:
        build = builder_of(settings(learner={"activation_checkpointing": again}))
        own, passes = make(), Counter[str]()
        attention = next(part for name, part in own.model.named_modules() if name.endswith(("attn", "attention")))
        attention.register_forward_hook(lambda *_: passes.update(["layer"]))
        if kind == "sft":
            learner = build(own, CrossEntropy(SFT, own.pad_id))
            return [learner.step(rows(4), 1e-2, seed) for seed in range(3)], passes["layer"]
        some, preference = pairs(policy(), 4), build(own, Preference(DPO, own.pad_id))
        reference = preference.reference(some)
        references = [reference(some) for _ in range(3)]
        passes.clear()
        return [preference.step(some, 1e-2, seed, of) for seed, of in enumerate(references)], passes["layer"]

    (again, twice), (kept, once) = steps(again=True), steps(again=False)
    assert again == kept
    assert twice == 2 * once


@pytest.mark.parametrize(("tokens", "count"), [(64, 3), (4096, 2)])
def test_a_pass_of_demonstrations_keeps_to_its_size_and_changes_no_update(tokens, count):
    some, split = rows(9), SFT.model_copy(update={"micro_batch_tokens": tokens})
    passes = CrossEntropy(split, 0).passes(some)
    assert sorted(number for numbers in passes for number in numbers) == list(range(9))
    for numbers in passes:
        widths = [max(len(some[number][part]) for number in numbers) for part in (0, 1)]
        assert len(numbers) * sum(widths) <= tokens or len(numbers) == 1
    assert len(passes) == count
    found, whole = (alone(own, CrossEntropy(how, own.pad_id)) for own, how in ((policy(), split), (policy(), SFT)))
    assert found.step(some, 1e-2, 0) == pytest.approx(whole.step(some, 1e-2, 0), rel=1e-5)


def test_the_optimizer_is_the_stages_own_and_ranks_and_memory_are_those_of_the_learner():
    spread = LearnerSettings(kind="deepspeed", ranks={"processes": 4}, zero={"stage": 3}, lr=0.5, logits_at_once=7)
    found = learner_settings(spread, SFT)
    assert (found.kind, found.ranks.processes, found.zero.stage) == ("deepspeed", 4, 3)
    assert found.logits_at_once == 7
    exact = LearnerSettings(compute_dtype="float32")
    assert [learner_settings(exact, stage).compute_dtype for stage in (SFT, DPO)] == ["auto", "float32"]
    assert (found.lr, found.betas, found.weight_decay) == (SFT.lr, SFT.betas, SFT.weight_decay)
