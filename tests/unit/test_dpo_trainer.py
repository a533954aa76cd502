"""The DPO trainer: what it scores, that splits and stops change nothing, and that it learns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from factories import assert_resumes_to_the_bit, gpt2, policy, prompts, same

from components.config.dpo import DpoSettings
from components.dpo.pairs import Answer, Pair
from components.dpo.trainer import DpoTrainer, Preference, padded_tokens
from components.policy import Policy

SETTINGS = DpoSettings(steps=6, batch_size=4, lr=1e-3, warmup=2, beta=0.5)


def pairs(micro: Policy, count: int = 6) -> list[Pair]:
    """The right sum against a wrong one of another length."""

    def answer(text: str) -> Answer:
        return Answer(text, micro.encode_answer(text))

    return [
        Pair(p.id, 0, p.text, micro.encode_prompt(p.text), answer(f"#{p.answer}"), answer("#9" + "8" * (i % 3)))
        for i, p in enumerate(prompts(count))
    ]


def trainer(micro: Policy, rows: Sequence[Pair] | None = None, **changes: object) -> DpoTrainer:
    return DpoTrainer(micro, rows or pairs(micro), SETTINGS.model_copy(update=changes), seed=0)


def run(tested: DpoTrainer, *steps: int) -> list[dict[str, float]]:
    return [tested.step(step) for step in steps]


def summed(micro: Policy, pair: Pair, answer: Answer) -> float:
    """Log-probability of an answer, the plain way: one row, no padding, its own tokens only."""
    ids, start = torch.tensor([pair.prompt_ids + answer.token_ids]), len(pair.prompt_ids)
    with torch.no_grad():
        logp = torch.log_softmax(micro.model(ids).logits[0, start - 1 : -1].float(), -1)
    return logp.gather(-1, torch.tensor(answer.token_ids)[:, None]).sum().item()


# What is scored


def test_the_log_probabilities_are_those_of_the_answers_tokens_alone():
    micro = policy()
    rows = pairs(micro)
    found = trainer(micro, rows).measure(rows)
    assert found["chosen_logp"] == pytest.approx(sum(summed(micro, p, p.chosen) for p in rows) / 6, rel=1e-5)
    assert found["rejected_logp"] == pytest.approx(sum(summed(micro, p, p.rejected) for p in rows) / 6, rel=1e-5)


@pytest.mark.parametrize("make", [policy, gpt2])
def test_before_the_first_update_policy_and_reference_are_one(make):
    micro = make()
    micro.model.train()  # dropout, where there is any, belongs to neither
    first = trainer(micro, pairs(policy())).step(0)
    assert first["loss"] == pytest.approx(math.log(2), abs=1e-7)
    assert (first["margin"], first["reward_accuracy"]) == (0.0, 0.0)
    assert (first["chosen_change"], first["rejected_change"]) == (0.0, 0.0)


def test_the_reference_stays_where_the_policy_started():
    micro = policy()
    rows, start = pairs(micro), policy()
    tested = trainer(micro, rows)
    run(tested, *range(4))
    found = tested.measure(rows)
    began = found["chosen_logp"] - found["chosen_change"]
    assert began == pytest.approx(sum(summed(start, p, p.chosen) for p in rows) / 6, rel=1e-5)
    assert abs(found["chosen_change"]) > 1e-3


def test_tokens_that_a_tool_wrote_contribute_nothing():
    micro = policy()
    (pair,) = pairs(micro, 1)
    ids = pair.chosen.token_ids
    masked = Answer("", ids, sampled=(True,) + (False,) * (len(ids) - 1))
    found = trainer(micro).measure([Pair("", 0, "", pair.prompt_ids, masked, pair.rejected)])
    assert found["chosen_logp"] == pytest.approx(summed(micro, pair, Answer("", ids[:1])), rel=1e-5)


def test_nothing_to_measure_is_no_figure():
    assert trainer(policy()).measure([]) == {}


# Batches


def passes(batch: Sequence[Pair], tokens: int) -> list[list[int]]:
    """Numbers of the pairs of each pass of an update."""
    return Preference(DpoSettings(micro_batch_tokens=tokens), 0).passes(batch)


@pytest.mark.parametrize("tokens", [64, 100])
def test_any_split_into_micro_batches_gives_the_same_update(tokens):
    whole, split = policy(), policy()
    (expected,) = run(trainer(whole, warmup=0), 0)
    (found,) = run(trainer(split, warmup=0, micro_batch_tokens=tokens), 0)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert all(torch.allclose(w, split.weights()[name], atol=2e-5) for name, w in whole.weights().items())


def test_the_splits_of_that_test_are_different_ones():
    micro = policy()
    batch = pairs(micro)
    counts = [len(passes(batch, tokens)) for tokens in (64, 100, 4096)]
    assert counts == sorted(set(counts), reverse=True)
    assert counts[-1] == 1


@pytest.mark.parametrize("tokens", [64, 100, 1000])
def test_micro_batches_keep_to_their_size_and_lose_no_pair(tokens):
    micro = policy()
    batch = pairs(micro, 9)
    parts = passes(batch, tokens)
    assert sorted(number for part in parts for number in part) == list(range(len(batch)))
    assert all(padded_tokens([batch[number] for number in part]) <= tokens or len(part) == 1 for part in parts)


@pytest.mark.parametrize(("step", "lr"), [(0, 0.5e-3), (1, 1e-3), (2, 1e-3), (4, 0.5e-3)])
def test_worked_learning_rates(step, lr):
    assert trainer(policy()).step(step)["lr"] == pytest.approx(lr)


# Stopping and learning


@pytest.mark.parametrize("stop", [1, 3])
def test_resuming_equals_not_stopping_to_the_bit(tmp_path, stop):
    assert_resumes_to_the_bit(trainer, run, tmp_path, stop)


def test_it_learns_to_prefer_the_chosen_and_the_log_shows_it():
    micro = policy()
    rows = pairs(micro)
    log = run(trainer(micro, rows, steps=30, lr=3e-3), *range(30))
    assert log[-1]["reward_accuracy"] == 1.0
    assert log[-1]["loss"] < 0.1 < log[0]["loss"]
    assert log[-1]["margin"] == pytest.approx(log[-1]["chosen_reward"] - log[-1]["rejected_reward"], rel=1e-5)
    assert log[-1]["rejected_change"] < -1


def test_a_gradient_that_is_not_finite_changes_nothing_and_is_counted():
    micro = policy()
    tested = trainer(micro)
    before = {name: w.clone() for name, w in micro.weights().items()}
    hook = micro.model.get_output_embeddings().register_forward_hook(lambda *args: args[2] * float("nan"))
    row = tested.step(0)
    hook.remove()
    assert row["nonfinite"] == 1.0
    assert all(math.isfinite(value) for value in row.values())
    assert same(before, micro.weights())
    assert tested.step(1)["nonfinite"] == 0.0
