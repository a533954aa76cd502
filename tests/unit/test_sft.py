"""The supervised stage, and the triage of its checkpoint."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from factories import assert_resumes_to_the_bit, gpt2, group, policy, prompts
from torch import Tensor

from components.config.policy import SftSettings, TriageSettings
from components.policy import Policy
from components.policy.tiny import build_tokenizer
from components.sft.trainer import Row, SftTrainer, encode
from components.sft.triage import triage, zero_variance
from components.tools import Tool
from components.tools.calculator import Calculator
from components.types import Prompt

SETTINGS = SftSettings(steps=8, batch_size=4, lr=1e-2, warmup=2)


def trainer(
    micro: Policy, rows: list[Prompt] | None = None, seed: int = 0, tool: Tool | None = None, **changes: object
) -> SftTrainer:
    return SftTrainer(micro, rows or prompts(10), SETTINGS.model_copy(update=changes), seed, tool)


def run(tested: SftTrainer, *steps: int) -> list[dict[str, float]]:
    return [tested.step(step) for step in steps]


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


# The trainer


def test_the_loss_is_the_mean_negative_log_likelihood_of_the_demonstrations_tokens():
    micro, rows = policy(), prompts(4)
    total, tokens = 0.0, 0
    for row in rows:
        question, answer = micro.encode_prompt(row.text), micro.encode_answer(row.demonstration)
        with torch.no_grad():
            logits = micro.model(torch.tensor([question + answer])).logits[0, len(question) - 1 : -1]
        total += torch.nn.functional.cross_entropy(logits, torch.tensor(answer), reduction="sum").item()
        tokens += len(answer)
    assert trainer(micro, rows).step(0)["loss"] == pytest.approx(total / tokens, rel=1e-5)


def test_training_learns_the_demonstration_and_not_the_reference():
    micro = policy()
    rows = [replace(p, demonstration="#7", solution="#9") for p in prompts(4)]
    tested = trainer(micro, rows, steps=40)
    losses = [row["loss"] for row in run(tested, *range(40))]
    assert losses[-1] < 0.2 < losses[0]


@pytest.mark.parametrize(("rows", "batch_size"), [(1, 1), (1, 4), (3, 7), (8, 4), (10, 4), (12, 5)])
def test_every_row_comes_once_an_epoch(rows, batch_size):
    tested = trainer(policy(), prompts(rows), batch_size=batch_size)
    drawn = [i for step in range(rows) for i in tested._epochs.batch(step)]
    assert all(Counter(drawn[i : i + rows]) == Counter(range(rows)) for i in range(0, len(drawn), rows))


def test_epochs_have_different_orders_and_the_seed_decides_them():
    def order(seed: int) -> list[list[int]]:
        tested = trainer(policy(), prompts(8), seed=seed)
        return [tested._epochs.batch(step) for step in range(4)]

    first = order(0)
    assert first[:2] != first[2:]
    assert order(0) == first != order(1)


def test_the_rate_is_applied_and_logged():
    assert [row["lr"] for row in run(trainer(policy(), warmup=4), 0, 1, 2)] == pytest.approx([0.0025, 0.005, 0.0075])


@pytest.mark.parametrize("stop", [1, 3])
def test_resuming_equals_not_stopping_to_the_bit(tmp_path, stop):
    assert_resumes_to_the_bit(trainer, run, tmp_path, stop)


def test_dropout_depends_on_the_step_and_not_on_what_ran_before(tmp_path):
    whole, resumed = gpt2(), gpt2()
    begun = trainer(whole)
    run(begun, 0)
    begun.save(tmp_path)
    torch.rand(5)
    rest = run(begun, 1, 2)
    again = trainer(resumed)
    again.load(tmp_path)
    assert run(again, 1, 2) == rest
    assert same(resumed.weights(), whole.weights())


# Demonstrations with a tool


CALLS = "<<1+1=2>>#2"
OBSERVED = "2>>"


def with_calls(text: str = CALLS) -> list[Prompt]:
    return [replace(p, demonstration=text) for p in prompts(4)]


def text_of(micro: Policy, row: Row, learned: bool) -> str:
    ids = (i for i, flag in zip(row.answer, row.learned, strict=True) if flag is learned)
    return micro.decode(tuple(ids))


def test_what_the_tool_writes_is_read_and_not_learned():
    micro = policy()
    (row, *_) = trainer(micro, with_calls(), tool=Calculator())._rows
    assert (text_of(micro, row, True), text_of(micro, row, False)) == ("<<1+1=#2", OBSERVED)
    assert (row.answer[-1], row.learned[-1]) == (micro.eos_id, True)


def test_without_a_tool_all_of_a_demonstration_is_learned_as_it_always_was():
    micro = policy()
    (row, *_) = trainer(micro, with_calls())._rows
    assert all(row.learned)
    assert row.answer == micro.encode_answer(CALLS)


def test_no_token_reaches_from_the_policys_stretch_into_the_tools():
    tokenizer = build_tokenizer([">>#2=2"] * 9, vocab_size=290, max_positions=64)
    micro = Policy(policy().model, tokenizer)
    whole = micro.encode_answer(CALLS)
    row = encode(micro, with_calls()[0], Calculator())
    assert len(row.answer) > len(whole)  # >># is one token of the vocabulary
    assert text_of(micro, row, False) == OBSERVED


def test_the_loss_with_a_tool_is_over_the_policys_own_tokens():
    micro, rows = policy(), with_calls()
    total, tokens = 0.0, 0
    for prompt in rows:
        row = encode(micro, prompt, Calculator())
        with torch.no_grad():
            logits = micro.model(torch.tensor([row.question + row.answer])).logits[0, len(row.question) - 1 : -1]
        losses = torch.nn.functional.cross_entropy(logits, torch.tensor(row.answer), reduction="none")
        total += losses[torch.tensor(row.learned)].sum().item()
        tokens += sum(row.learned)
    assert trainer(micro, rows, tool=Calculator()).step(0)["loss"] == pytest.approx(total / tokens, rel=1e-5)


def test_training_with_a_tool_makes_calls_likelier_and_leaves_their_results_open():
    micro = policy()
    run(trainer(micro, with_calls(), steps=30, tool=Calculator()), *range(30))
    row = encode(micro, with_calls()[0], Calculator())
    with torch.no_grad():
        logits = micro.model(torch.tensor([row.question + row.answer])).logits[0, len(row.question) - 1 : -1]
    losses = torch.nn.functional.cross_entropy(logits, torch.tensor(row.answer), reduction="none")
    learned = torch.tensor(row.learned)
    assert losses[learned].max() < 0.5 < 2 < losses[~learned].min()


# Triage


LIMITS = TriageSettings(prompts=4, samples=8, min_entropy=0.2, max_zero_variance=0.6, min_passk_gap=0.1)


def rewards(right: int, of: int = 8) -> list[float]:
    return [1.0] * right + [0.0] * (of - right)


def verdict(*rights: int, entropy: float = 0.5, group_size: int = 8, limits: TriageSettings = LIMITS) -> dict:
    return triage([group(rewards(right)) for right in rights], entropy, group_size, limits)


def test_a_checkpoint_with_mixed_groups_is_accepted_with_its_figures():
    found = verdict(2, 4, 8, 0)
    assert (found["verdict"], found["reasons"]) == ("accept", [])
    assert found["pass_at_1"] == pytest.approx((0.25 + 0.5 + 1 + 0) / 4)
    assert found["pass_at_k"] == pytest.approx(3 / 4)
    assert (found["zero_variance_share"], found["all_right_share"], found["all_wrong_share"]) == (0.5, 0.25, 0.25)
    assert (found["prompts"], found["k"], found["truncated_share"], found["unscorable_share"]) == (4, 8, 0.0, 0.0)
    assert found["limits"] == {"min_entropy": 0.2, "max_zero_variance": 0.6, "min_passk_gap": 0.1}


@pytest.mark.parametrize(
    ("rights", "entropy", "words"),
    [
        ((2, 4, 4, 4), 0.19, ["entropy is 0.190 nats per token, below 0.2"]),
        ((0, 0, 0, 4), 0.5, ["75.0% of groups of 8", "all wrong 75.0%, all right 0.0%", "above 60%"]),
        ((8, 8, 8, 8), 0.5, ["all right 100.0%", "a gap of 0.0 points, below 10"]),
    ],
)
def test_a_refusal_says_why_with_figures_and_limits(rights, entropy, words):
    found = verdict(*rights, entropy=entropy)
    assert found["verdict"] == "refuse"
    assert all(any(word in reason for reason in found["reasons"]) for word in words)


def test_every_reason_for_a_refusal_is_given():
    assert len(verdict(0, 0, 0, 0, entropy=0.0)["reasons"]) == 3


def test_figures_at_their_limits_are_accepted():
    limits = LIMITS.model_copy(update={"max_zero_variance": 0.5})
    assert verdict(0, 0, 4, 4, entropy=0.2, limits=limits)["verdict"] == "accept"


def test_zero_variance_is_counted_at_the_size_of_the_training_groups():
    samples = group([1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0])
    assert zero_variance([samples], 4) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert zero_variance([samples], 12) == (0.0, 0.0)
    assert [verdict(4, group_size=size)["zero_variance_share"] for size in (4, 8)] == [1.0, 0.0]


def test_a_checkpoint_of_which_nothing_could_be_scored_is_refused():
    found = triage([group([None] * 8)], 0.5, 8, LIMITS)
    assert (found["verdict"], found["unscorable_share"], found["zero_variance_share"]) == ("refuse", 1.0, 1.0)


def test_unscorable_completions_count_neither_as_right_nor_as_wrong():
    assert triage([group([1.0, 0.0, None, None])], 0.5, 2, LIMITS)["pass_at_1"] == 0.5


def test_rates_are_given_by_family():
    groups = [group(rewards(right), prompt=prompts(2)[i]) for i, right in ((0, 4), (0, 8), (1, 0))]
    assert triage(groups, 0.5, 8, LIMITS)["families"] == {"even": 0.75, "odd": 0.0}


def test_triage_figures_are_finite_numbers_even_without_a_group():
    found = triage([], 0.0, 8, LIMITS)
    assert found["verdict"] == "refuse"
    assert all(math.isfinite(value) for value in found.values() if isinstance(value, float))
