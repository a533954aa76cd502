"""The supervised stage, and the triage of its checkpoint."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from factories import assert_resumes_to_the_bit, gpt2, group, policy, prompts, same
from torch import Tensor

from components.config.policy import SftSettings, TriageSettings
from components.policy import Policy
from components.policy.tiny import build_tokenizer
from components.sft.trainer import Row, SftTrainer, encode
from components.sft.triage import Step, constant_share, judged, triage
from components.tools import Tool
from components.tools.calculator import Calculator
from components.types import Completion, Group, Prompt, Score

SETTINGS = SftSettings(steps=8, batch_size=4, lr=1e-2, warmup=2)


def trainer(
    micro: Policy, rows: list[Prompt] | None = None, seed: int = 0, tool: Tool | None = None, **changes: object
) -> SftTrainer:
    return SftTrainer(micro, rows or prompts(10), SETTINGS.model_copy(update=changes), seed, tool)


def run(tested: SftTrainer, *steps: int) -> list[dict[str, float]]:
    return [tested.step(step) for step in steps]


def losses_of(micro: Policy, row: Row) -> Tensor:
    """Negative log-probability of every token of the answer, the plain way: one row, no padding."""
    with torch.no_grad():
        logits = micro.model(torch.tensor([row.question + row.answer])).logits[0, len(row.question) - 1 : -1]
    return torch.nn.functional.cross_entropy(logits, torch.tensor(row.answer), reduction="none")


# The trainer


def test_the_loss_is_the_mean_negative_log_likelihood_of_the_demonstrations_tokens():
    micro, rows = policy(), prompts(4)
    plain = [Row(micro.encode_prompt(row.text), micro.encode_answer(row.demonstration), ()) for row in rows]
    losses = torch.cat([losses_of(micro, row) for row in plain])
    assert trainer(micro, rows).step(0)["loss"] == pytest.approx(losses.mean().item(), rel=1e-5)


def test_in_bfloat16_it_learns_nearly_the_same_and_keeps_weights_in_float32():
    exact, coarse = policy(), policy()
    losses = [run(trainer(exact), *range(4)), run(trainer(coarse, compute_dtype="bfloat16"), *range(4))]
    assert losses[0] != losses[1]
    assert [row["loss"] for row in losses[1]] == pytest.approx([row["loss"] for row in losses[0]], rel=0.01)
    assert coarse.model.dtype == torch.float32


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
    micro.model.resize_token_embeddings(290)
    whole = micro.encode_answer(CALLS)
    row = encode(micro, with_calls()[0], Calculator())
    assert len(row.answer) > len(whole)  # >># is one token of the vocabulary
    assert text_of(micro, row, False) == OBSERVED


def test_the_loss_with_a_tool_is_over_the_policys_own_tokens():
    micro, rows = policy(), with_calls()
    encoded = [encode(micro, row, Calculator()) for row in rows]
    own = torch.cat([losses_of(micro, row)[torch.tensor(row.learned)] for row in encoded])
    assert trainer(micro, rows, tool=Calculator()).step(0)["loss"] == pytest.approx(own.mean().item(), rel=1e-5)


def test_training_with_a_tool_makes_calls_likelier_and_leaves_their_results_open():
    micro = policy()
    run(trainer(micro, with_calls(), steps=30, tool=Calculator()), *range(30))
    row = encode(micro, with_calls()[0], Calculator())
    losses, learned = losses_of(micro, row), torch.tensor(row.learned)
    assert losses[learned].max() < 0.5 < 2 < losses[~learned].min()


# Triage


LIMITS = TriageSettings()


def rewards(right: int, of: int = 8) -> list[float]:
    return [1.0] * right + [0.0] * (of - right)


def judge(groups: list, *, group_size=8, prompts=8, attempts=1, entropy=0.5, limits=LIMITS) -> dict:
    return triage(groups, entropy, Step(group_size, prompts, attempts), limits)


def verdict(*rights: int, **step) -> dict:
    return judge([group(rewards(right)) for right in rights], **step)


def test_a_checkpoint_with_mixed_groups_is_accepted_with_its_figures():
    found = verdict(2, 4, 8, 0)
    assert (found["verdict"], found["reasons"]) == ("accept", [])
    assert found["pass_at_1"] == pytest.approx((0.25 + 0.5 + 1 + 0) / 4)
    assert found["pass_at_k"] == pytest.approx(3 / 4)
    assert (found["zero_variance_share"], found["all_right_share"], found["all_wrong_share"]) == (0.5, 0.25, 0.25)
    assert (found["prompts"], found["k"], found["truncated_share"], found["unscorable_share"]) == (4, 8, 0.0, 0.0)
    assert found["teaching"] == pytest.approx(4)
    assert found["limits"] == {
        "min_teaching": 1.0,
        "min_headroom": 0.05,
        "min_entropy": 0.18,
        "min_passk_gap": 0.1,
    }


@pytest.mark.parametrize(
    ("rights", "words"),
    [
        (
            [0] * 60,
            ["0.00 of the 8 groups of a step", "all wrong and 0.0% all right", "fewer than triage.min_teaching (1)"],
        ),
        ([8] * 60, ["100.0% all right", "pass@1 is 100.0%: less than triage.min_headroom (5%) is left"]),
    ],
)
def test_a_refusal_says_why_with_figures_and_limits(rights, words):
    found = verdict(*rights)
    assert found["verdict"] == "refuse"
    assert all(any(word in reason for reason in found["reasons"]) for word in words)


def test_a_verdict_depends_on_the_groups_of_a_step_and_not_on_a_share_alone():
    rights = [0] * 50 + [4] * 10
    assert verdict(*rights, prompts=4)["verdict"] == "refuse"
    assert verdict(*rights, prompts=64)["verdict"] == "accept"
    assert verdict(*rights, prompts=4, attempts=3)["verdict"] == "accept"  # dynamic sampling draws more prompts


def test_a_policy_that_is_sure_of_itself_and_finds_little_is_refused():
    rights = [8] * 10 + [0] * 20 + [4] * 2
    assert verdict(*rights, prompts=32)["verdict"] == "accept"
    found = verdict(*rights, prompts=32, entropy=0.01)
    assert found["verdict"] == "refuse"
    assert "the policy is nearly deterministic and more samples find little" in found["reasons"][0]


def test_a_step_never_trains_on_more_groups_than_it_has():
    assert verdict(4, 4, 4, attempts=3)["teaching"] == 8


def test_constant_groups_are_counted_over_all_ways_to_draw_them():
    assert constant_share([(4, 2)], 2) == pytest.approx(1 / 6)
    assert constant_share([(16, 8), (16, 0)], 8) == pytest.approx(0.5 / 12870)
    assert constant_share([(16, 8), (16, 16)], 8) == pytest.approx(0.5 + 0.5 / 12870)
    assert constant_share([], 8) == 0.0


def test_of_a_prompt_with_too_few_scorable_samples_all_are_taken():
    assert constant_share([(4, 4), (4, 0), (4, 2), (4, 1)], 8) == 0.25


def test_groups_of_partial_accuracies_carry_a_gradient_where_these_differ():
    def judged_on(*accuracies: float) -> dict[str, Any]:
        scores = tuple(Score(value) for value in accuracies)
        completions = tuple(Completion((1,), (-1.0,), "stop", "x") for _ in accuracies)
        group = Group(Prompt("p", "?", "1", "1"), (1,), completions, scores)
        return triage([group] * 8, 1.0, Step(2, 8, 1), TriageSettings())

    assert judged_on(0.1, 0.9, 0.3, 0.4)["teaching"] == 8
    assert judged_on(0.5, 0.5, 0.5, 0.5)["teaching"] == 0


def test_groups_of_one_carry_a_gradient_because_a_critic_is_their_baseline():
    assert verdict(0, 0, 4, group_size=1)["verdict"] == "accept"


def test_a_critic_learns_from_constant_groups_as_well():
    constant = [group([accuracy] * 8, prompt=p) for accuracy, p in zip((0.0, 1.0), prompts(2), strict=True)]
    steps = (Step(8, 4, 1, critic) for critic in (False, True))
    assert [triage(constant, 1.0, step, TriageSettings())["teaching"] for step in steps] == [0.0, 4.0]


def test_a_recorded_verdict_can_be_judged_again():
    found = verdict(0, 3, 8)
    assert judged(found) == {name: found[name] for name in ("teaching", "verdict", "reasons")}


def test_a_checkpoint_of_which_nothing_could_be_scored_is_refused():
    found = judge([group([None] * 8)] * 60)
    assert (found["verdict"], found["unscorable_share"], found["zero_variance_share"]) == ("refuse", 1.0, 1.0)


def test_unscorable_completions_count_neither_as_right_nor_as_wrong():
    assert judge([group([1.0, 0.0, None, None])], group_size=2)["pass_at_1"] == 0.5


def test_rates_are_given_by_family():
    groups = [group(rewards(right), prompt=prompts(2)[i]) for i, right in ((0, 4), (0, 8), (1, 0))]
    assert judge(groups)["families"] == {"even": 0.75, "odd": 0.0}


def test_triage_figures_are_finite_numbers_even_without_a_group():
    found = judge([])
    assert all(math.isfinite(value) for value in found.values() if isinstance(value, float))
