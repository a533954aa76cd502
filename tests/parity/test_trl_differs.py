"""Where TRL 1.16 and we part ways, by name. Each test pins both sides, so that a change of either is noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from cases import Case, largest_difference, our_advantages, our_step, random_case
from pydantic import ValidationError
from trl_loss import trl_step

from components.config.objective import ObjectiveSettings
from components.config.ratios import ClipRatio
from components.objectives import AGGREGATIONS

TRLS_STD = {"std": "unbiased", "eps": 1e-4}
PER_SEQUENCE = {"kind": "sequence_mean"}


def settings(**ours: Any) -> ObjectiveSettings:
    return ObjectiveSettings.model_validate(
        {
            "advantage": {"kind": "grpo", **TRLS_STD},
            "ratio": {"kind": "clip", "low": 0.2, "high": 0.2},
            "correction": None,
            **ours,
        }
    )


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
    case = random_case(1, rewards=2)
    case.rewards[2, 1] = torch.nan
    gdpo = settings(advantage={"kind": "gdpo", **TRLS_STD})
    theirs = trl_step(case, multi_objective_aggregation="normalize_then_sum").advantages
    as_0 = replace(case, rewards=case.rewards.nan_to_num(nan=0.0))
    assert torch.equal(our_advantages(case, gdpo), our_advantages(as_0, gdpo))
    assert (our_advantages(case, gdpo).flatten() - theirs).abs().max() > 0.01


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


# Ratio


def test_trl_cispo_takes_epsilon_high_as_the_absolute_cap():
    on_policy = random_case(0, drift=0.0)
    ours = our_step(on_policy, settings(ratio={"kind": "cispo", "cap": 1.28}))
    assert torch.allclose(ours.gradient, trl_step(on_policy, loss_type="dapo").gradient, atol=1e-7)
    by_default, as_if_ppo = (trl_step(on_policy, loss_type="cispo", **knob) for knob in ({}, {"epsilon_high": 0.28}))
    assert torch.allclose(by_default.gradient, 0.2 * ours.gradient, atol=1e-7)
    assert torch.allclose(as_if_ppo.gradient, 0.28 * ours.gradient, atol=1e-7)


def test_trl_accepts_a_cispo_cap_below_1_and_a_delta_inside_the_clip_and_we_refuse_both():
    case = random_case(0)
    assert trl_step(case, loss_type="cispo", epsilon_high=0.2).gradient.any()
    assert trl_step(case, epsilon_high=0.28, delta=1.1).gradient.any()
    with pytest.raises(ValidationError, match="cap"):
        settings(ratio={"kind": "cispo", "cap": 0.2})
    with pytest.raises(ValidationError, match="dual"):
        ClipRatio(low=0.2, high=0.28, dual=1.1)


def test_trl_does_not_bound_a_log_ratio_and_ours_stays_finite():
    case = random_case(0)
    case.logp[:] = case.old_logp + 200
    assert not torch.tensor(trl_step(case).loss).isfinite()
    assert torch.tensor(our_step(case, settings()).loss).isfinite()


@pytest.mark.parametrize(("name", "junk"), [("logp", float("nan")), ("old_logp", float("-inf"))])
def test_trl_multiplies_by_the_mask_so_that_what_stands_in_a_tools_tokens_matters_and_in_ours_it_does_not(name, junk):
    case = random_case(0)
    spoiled = replace(case, **{name: torch.where(case.mask, getattr(case, name), junk)})
    assert not torch.tensor(trl_step(spoiled).loss).isfinite()
    assert largest_difference(our_step(spoiled, settings()), our_step(case, settings())) == 0


# KL


def test_trl_has_no_k2_the_straight_through_kl_has_k3s_value_and_k2s_gradient():
    case = random_case(0)
    theirs = trl_step(case, beta=0.1, use_bias_correction_kl=False)
    straight, k2 = (our_step(case, settings(kl={"kind": kind, "beta": 0.1})) for kind in ("k3_straight_through", "k2"))
    assert straight.loss == near(theirs.loss, 1e-6)
    assert torch.equal(straight.gradient, k2.gradient)
    assert (straight.gradient - theirs.gradient).abs().max() > 1e-4


def test_trl_weighs_the_kl_with_the_sequences_ratio_under_gspo_and_ours_with_the_tokens():
    case = random_case(0)
    gspo = {"ratio": {"kind": "gspo", "low": 0.1, "high": 0.1}, "aggregation": PER_SEQUENCE}
    trl = {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 0.1, "beta": 0.1}
    plain, weighed = (our_step(case, settings(**gspo, kl={"kind": kind, "beta": 0.1})) for kind in ("k3", "k3_ratio"))
    assert largest_difference(plain, trl_step(case, **trl, use_bias_correction_kl=False)) < 1e-6
    assert largest_difference(weighed, trl_step(case, **trl)) > 1e-4


# Sampler against trainer


def test_trl_sequence_mask_also_weighs_what_it_keeps_and_ours_only_masks():
    case = random_case(4)
    window = {"vllm_importance_sampling_clip_min": 0.5, "vllm_importance_sampling_clip_max": 2.0}
    theirs = trl_step(case, sampler=True, vllm_importance_sampling_mode="sequence_mask", **window)
    ours = our_step(case, settings(correction={"kind": "mask_sequence_product", "low": 0.5, "high": 2.0}))
    product = ((case.old_logp - case.rollout_logp) * case.mask).sum(1, keepdim=True).exp()
    kept = (product >= 0.5) & (product <= 2.0)
    assert 0 < kept.sum() < len(case)
    assert torch.allclose(theirs.gradient, ours.gradient * product, atol=1e-7)


def test_trl_by_default_drops_a_long_completion_for_a_tiny_bias_and_the_geometric_mean_keeps_it():
    case = random_case(0, width=120, drift=0.0)
    biased = replace(case, rollout_logp=case.old_logp - 0.012)
    gone = (trl_step(biased, sampler=True).gradient == 0).all(1)
    assert torch.equal(gone, 0.012 * case.mask.sum(1) > torch.tensor(3.0).log())
    assert 0 < gone.sum() < len(case)
    geometric = {"kind": "mask_sequence_geometric", "low": 0.98, "high": 1.02}
    assert (our_step(biased, settings(correction=geometric)).gradient != 0).any(1).all()


def test_trl_off_policy_mask_measures_from_the_sampler_when_vllm_sampled_and_ours_from_the_trainer():
    case = random_case(0, drift=0.0)
    case = replace(case, rollout_logp=case.old_logp + 1.0)
    uncorrected = {"sampler": True, "vllm_importance_sampling_correction": False, "off_policy_mask_threshold": 0.5}
    ours, theirs = our_step(case, settings(off_policy_mask={"delta": 0.5})), trl_step(case, **uncorrected)
    assert torch.equal((theirs.gradient != 0).any(1), theirs.advantages > 0)
    assert (ours.gradient != 0).any(1).all()


# Entropy


BONUS = {"entropy": {"coef": 0.1}}


def test_trl_takes_the_mean_entropy_of_a_micro_batch_for_its_bonus_and_ours_is_aggregated_like_the_loss():
    case = random_case(0)
    theirs, split = (trl_step(case, entropy_coef=0.1, micro_batches=n) for n in (1, 4))
    assert largest_difference(our_step(case, settings(**BONUS)), theirs) < 1e-6
    assert largest_difference(our_step(case, settings(**BONUS), micro_batches=4), theirs) < 1e-6
    assert largest_difference(split, theirs) > 1e-3
    per_sequence = our_step(case, settings(**BONUS, aggregation=PER_SEQUENCE))
    assert (per_sequence.entropy_gradient - trl_step(case, loss_type="grpo", entropy_coef=0.1).entropy_gradient).any()


def test_trl_takes_the_entropy_quantile_of_a_micro_batch_and_ours_of_the_batch():
    case = random_case(0)
    half = {"selection": {"kind": "top_entropy", "share": 0.5}}
    assert case.mask.sum() % 2 == 0
    assert largest_difference(our_step(case, settings(**half)), trl_step(case, top_entropy_quantile=0.5)) < 1e-6
    split = trl_step(case, top_entropy_quantile=0.5, micro_batches=4)
    assert largest_difference(our_step(case, settings(**half), micro_batches=4), split) > 1e-3


def test_trl_interpolates_the_quantile_and_may_keep_one_token_more_than_the_nearest_to_the_share():
    case = random_case(2, drift=0.0)
    ours = our_step(case, settings(selection={"kind": "top_entropy", "share": 0.2}))
    theirs = trl_step(case, top_entropy_quantile=0.2)
    assert case.mask.sum() * 0.2 == near(11.2)
    assert [(step.gradient != 0).sum().item() for step in (ours, theirs)] == [11, 12]
