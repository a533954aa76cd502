"""Where TRL 1.16 and we part ways in the loss of a token, by name. Both sides are pinned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from cases import largest_difference, our_step, random_case, settings
from pydantic import ValidationError
from trl_loss import trl_step

PER_SEQUENCE = {"kind": "sequence_mean"}


def near(expected: Any, tolerance: float = 1e-5) -> Any:
    return pytest.approx(expected, abs=tolerance)


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
        settings(ratio={"kind": "clip", "low": 0.2, "high": 0.28, "dual": 1.1})


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
