"""Where the definitions agree: our loss, gradient and advantages are TRL's, to 1e-5, on random tensors."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import pytest
import torch
from cases import TRLS_STD, largest_difference, our_advantages, our_step, random_case, settings
from trl_loss import trl_step

TOLERANCE = 1e-6
"""Ten times as strict as promised: what is left is the rounding of single precision."""


class Method(NamedTuple):
    """The same method in our words and in TRL's."""

    ours: dict[str, Any]
    trl: dict[str, Any]


PER_SEQUENCE = {"kind": "sequence_mean"}
CLIP_HIGHER = {"kind": "clip", "low": 0.2, "high": 0.28}
GSPO = {"epsilon": 0.1, "epsilon_high": 0.15, "importance_sampling_level": "sequence"}


def gspo(kind: str, aggregation: dict[str, Any], low: float = 0.1, high: float = 0.15) -> dict[str, Any]:
    return {"ratio": {"kind": kind, "low": low, "high": high}, "aggregation": aggregation}


METHODS = {
    "grpo": Method({"aggregation": PER_SEQUENCE}, {"loss_type": "grpo"}),
    "dapo": Method({"ratio": CLIP_HIGHER}, {"loss_type": "dapo", "epsilon_high": 0.28}),
    "dr_grpo": Method(
        {
            "advantage": {"kind": "grpo", "std": "none"},
            "aggregation": {"kind": "fixed", "tokens": 20},
        },
        {"loss_type": "dr_grpo", "scale_rewards": "none", "max_completion_length": 20},
    ),
    "two-sided clip": Method(
        {"ratio": {**CLIP_HIGHER, "dual": 1.5}}, {"loss_type": "dapo", "epsilon_high": 0.28, "delta": 1.5}
    ),
    "gspo": Method(gspo("gspo", PER_SEQUENCE), {"loss_type": "grpo", **GSPO}),
    "gspo of the paper": Method(
        gspo("gspo", PER_SEQUENCE, 3e-4, 4e-4),
        {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4},
    ),
    "gspo_token": Method(gspo("gspo_token", PER_SEQUENCE), {"loss_type": "grpo", **GSPO}),
    "luspo": Method(gspo("gspo", {"kind": "fixed", "tokens": 1}), {"loss_type": "luspo", **GSPO}),
    "gmpo": Method(
        {"ratio": {"kind": "gmpo", "low": 0.3, "high": 0.4}, "aggregation": PER_SEQUENCE},
        {"gmpo": True, "epsilon": 0.3, "epsilon_high": 0.4},
    ),
    "cispo": Method({"ratio": {"kind": "cispo", "cap": 1.3}}, {"loss_type": "cispo", "epsilon_high": 1.3}),
    "sapo": Method({"ratio": {"kind": "sapo"}, "aggregation": PER_SEQUENCE}, {"loss_type": "sapo"}),
    "sapo with other temperatures": Method(
        {"ratio": {"kind": "sapo", "tau_positive": 2.0, "tau_negative": 3.0}, "aggregation": PER_SEQUENCE},
        {"loss_type": "sapo", "sapo_temperature_pos": 2.0, "sapo_temperature_neg": 3.0},
    ),
    "kl k3": Method(
        {"kl": {"kind": "k3", "beta": 0.1}},
        {"loss_type": "dapo", "beta": 0.1, "use_bias_correction_kl": False},
    ),
    "kl k3 times the ratio": Method({"kl": {"kind": "k3_ratio", "beta": 0.1}}, {"loss_type": "dapo", "beta": 0.1}),
    "tis per token": Method(
        {"correction": {"kind": "tis_token", "cap": 1.2}},
        {
            "sampler": True,
            "vllm_importance_sampling_mode": "token_truncate",
            "vllm_importance_sampling_clip_max": 1.2,
        },
    ),
    "tis per sequence": Method(
        {"correction": {"kind": "tis_sequence_product", "cap": 1.2}},
        {
            "sampler": True,
            "vllm_importance_sampling_mode": "sequence_truncate",
            "vllm_importance_sampling_clip_max": 1.2,
        },
    ),
    "icepop": Method(
        {"correction": {"kind": "icepop", "low": 0.7, "high": 1.3}},
        {
            "sampler": True,
            "vllm_importance_sampling_mode": "token_mask",
            "vllm_importance_sampling_clip_min": 0.7,
            "vllm_importance_sampling_clip_max": 1.3,
        },
    ),
    "off-policy mask": Method(
        {"off_policy_mask": {"delta": 0.05}},
        {"sampler": True, "vllm_importance_sampling_correction": False, "off_policy_mask_threshold": 0.05},
    ),
    "overlong filter": Method({"overlong_filter": True}, {"mask_truncated_completions": True}),
}
THE_SAME_TWICE = {"gspo_token"}


ADVANTAGES = {
    "group": ({"kind": "grpo", **TRLS_STD}, {"scale_rewards": "group"}),
    "none": ({"kind": "grpo", "std": "none"}, {"scale_rewards": "none"}),
    "batch": ({"kind": "batch_std", **TRLS_STD}, {"scale_rewards": "batch"}),
    "gdpo": ({"kind": "gdpo", **TRLS_STD}, {"multi_objective_aggregation": "normalize_then_sum"}),
    "gdpo with weights": (
        {"kind": "gdpo", "weights": {"part0": 0.3, "part2": 2.0}, **TRLS_STD},
        {"multi_objective_aggregation": "normalize_then_sum", "reward_weights": [0.3, 1.0, 2.0]},
    ),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ADVANTAGES)
def test_advantages_of_several_rewards_are_trls_and_unscorable_completions_get_0(name, seed):
    case, (ours, trl) = random_case(seed, rewards=3), ADVANTAGES[name]
    case.rewards[[1, 4 + seed]] = torch.nan
    found, theirs = our_advantages(case, settings(advantage=ours)).flatten(), trl_step(case, **trl).advantages
    assert (found == 0).nonzero().flatten().tolist() == [1, 4 + seed]
    assert found.tolist() == pytest.approx(theirs.tolist(), abs=TOLERANCE)


@pytest.mark.parametrize(("seed", "micro_batches"), [(0, 1), (1, 3), (2, 6)])
@pytest.mark.parametrize("name", METHODS)
def test_loss_gradient_and_advantages_are_trls(name, seed, micro_batches):
    case, method = random_case(seed), METHODS[name]
    ours = our_step(case, settings(**method.ours), micro_batches)
    theirs = trl_step(case, micro_batches=micro_batches, **method.trl)
    assert largest_difference(ours, theirs) < TOLERANCE


def test_the_random_batches_are_off_policy_on_both_sides_of_the_clip_for_both_signs():
    case = random_case(0)
    signs = our_step(case, settings()).advantages.sign()[:, None]
    ratio = (case.logp - case.old_logp).exp() * signs
    for low, high in [(-torch.inf, -1.5), (-1.28, -0.8), (-0.8, 0.0), (0.0, 0.8), (0.8, 1.2), (1.28, torch.inf)]:
        assert (case.mask & (ratio > low) & (ratio < high)).sum() >= 2


def test_the_random_batches_tell_the_methods_apart():
    names = [name for name in METHODS if name not in THE_SAME_TWICE]
    found = [our_step(random_case(0), settings(**METHODS[name].ours)) for name in names]
    for (a, one), (b, other) in combinations(zip(names, found, strict=True), 2):
        assert largest_difference(one, other) > 100 * TOLERANCE, (a, b)
