"""Where TRL 1.16 and we part ways in what a batch teaches, by name. Both sides are pinned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from cases import TRLS_STD, Case, largest_difference, our_advantages, our_step, random_case, settings
from trl_loss import trl_step

from components.objectives.advantages import ADVANTAGES, rewards_of
from components.objectives.aggregation import AGGREGATIONS
from components.types import Group, Prompt, Score

PER_SEQUENCE = {"kind": "sequence_mean"}


def near(expected: Any, tolerance: float = 1e-5) -> Any:
    return pytest.approx(expected, abs=tolerance)


def rewarded(*rewards: float) -> Case:
    """One group with these rewards."""
    return replace(random_case(0, groups=1, size=len(rewards)), rewards=torch.tensor(rewards)[:, None])


# Advantages


def test_trl_divides_by_the_unbiased_std_plus_1e_4_and_our_default_by_the_populations_plus_1e_6():
    case = rewarded(1.0, 0.0, 0.0, 0.0)
    assert trl_step(case).advantages.tolist() == near([1.4997, -0.4999, -0.4999, -0.4999], 1e-4)
    ours = our_advantages(case, settings(advantage={"kind": "grpo"}))
    assert ours[0].tolist() == near([1.7320, -0.5773, -0.5773, -0.5773], 1e-4)


def test_trl_dr_grpo_alone_keeps_the_std():
    case, fixed = random_case(1), {"kind": "fixed", "tokens": 20}
    alone = trl_step(case, loss_type="dr_grpo", max_completion_length=20)
    without_std = settings(advantage={"kind": "grpo", "std": "none"}, aggregation=fixed)
    assert largest_difference(our_step(case, without_std), alone) > 0.1
    assert largest_difference(our_step(case, settings(aggregation=fixed)), alone) < 1e-6


def test_trl_makes_an_advantage_of_rounding_noise_in_a_group_of_equal_rewards_and_ours_is_exactly_0():
    case = rewarded(*[0.9] * 8)
    assert trl_step(case).advantages.abs().max().item() == near(6e-4)
    assert our_advantages(case, settings()).tolist() == [[0.0] * 8]


def test_trl_gives_an_unscorable_completion_advantage_0_as_we_do_but_its_tokens_stay_in_the_denominator():
    case = random_case(2)
    case.rewards[5] = torch.nan
    ours, theirs = our_step(case, settings()), trl_step(case)
    assert theirs.advantages.tolist() == near(ours.advantages.tolist())
    assert theirs.advantages[5] == 0
    share = 1 - case.mask[5].sum() / case.mask.sum()
    assert torch.allclose(theirs.gradient, ours.gradient * share, atol=1e-7)


def test_trl_counts_a_lone_scorable_completion_in_the_std_of_the_batch_and_ours_does_not():
    case = random_case(1)
    case.rewards[:3] = torch.nan
    case.rewards[3] = 100.0
    ours = our_advantages(case, settings(advantage={"kind": "batch_std", **TRLS_STD})).flatten()
    theirs = trl_step(case, scale_rewards="batch").advantages
    assert ours[:4].tolist() == theirs[:4].tolist() == [0.0] * 4
    std = [case.rewards[start:].std().item() + 1e-4 for start in (4, 3)]
    assert theirs[4:].tolist() == near((ours[4:] * std[0] / std[1]).tolist())


def test_trl_leaves_a_missing_part_out_of_its_statistics_under_gdpo_and_ours_counts_it_as_0():
    parts = [{"style": 0.5}, {"style": 1.0}, {}, {"style": 0.25}]
    scores = tuple(Score(accuracy, part) for accuracy, part in zip([1.0, 0.0, 1.0, 0.0], parts, strict=True))
    rewards = rewards_of([Group(Prompt("0", "", "", ""), (), (), scores)])
    ours = ADVANTAGES["gdpo"](rewards, settings(advantage={"kind": "gdpo", **TRLS_STD}).advantage)[0].tolist()
    columns = torch.tensor([[score.accuracy, score.parts.get("style", torch.nan)] for score in scores])
    case = replace(random_case(0, groups=1), rewards=columns)
    as_0 = replace(case, rewards=columns.nan_to_num(nan=0.0))
    missing, zero = (trl_step(c, multi_objective_aggregation="normalize_then_sum").advantages for c in (case, as_0))
    assert ours == near(zero.tolist())
    assert (missing - zero).abs().max() > 0.01


# Aggregation


def test_trl_bnpo_depends_on_the_micro_batch_split_and_ours_does_not():
    case = random_case(3)
    ours, split = our_step(case, settings()), our_step(case, settings(), micro_batches=4)
    assert largest_difference(ours, split) < 1e-6
    assert largest_difference(ours, trl_step(case, loss_type="bnpo")) < 1e-6
    assert largest_difference(ours, trl_step(case, loss_type="bnpo", micro_batches=4)) > 1e-3


def test_trl_divides_every_update_on_a_batch_by_the_mean_number_of_tokens_and_ours_by_its_own():
    case = random_case(0)
    theirs, whole = trl_step(case, updates=2), our_step(case, settings())
    assert torch.allclose(theirs.gradient, 2 * whole.gradient, atol=1e-7)
    first = case.mask[:6]
    assert 2 * first.sum() / case.mask.sum() == near(1.0625)  # what the weights of TRL's update would add up to
    weights = AGGREGATIONS["token_mean"](first, torch.zeros(6), settings().aggregation)
    assert weights.sum().item() == near(1)


@pytest.mark.parametrize(
    ("loss_type", "aggregation"), [("grpo", PER_SEQUENCE), ("dr_grpo", {"kind": "fixed", "tokens": 512})]
)
def test_trl_counts_completions_without_a_token_and_ours_does_not(loss_type, aggregation):
    case = random_case(0)
    ours = our_step(case, settings(aggregation=aggregation, overlong_filter=True))
    theirs = trl_step(case, loss_type=loss_type, mask_truncated_completions=True)
    kept = 1 - case.truncated.float().mean()
    assert kept == near(2 / 3)
    assert torch.allclose(theirs.gradient, ours.gradient * kept, atol=1e-7)
