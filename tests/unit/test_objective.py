"""The whole objective: what every composition must have, whatever its parts, and how the parts are put together.

The toy is a linear softmax policy over four actions; gradients are those of its weight matrix, through the softmax.
"""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import pad
from toys import Toy, near, run, sequence, settings, token_gradient, toy, weights_of

from components.objectives.controllers import Coefficients
from components.objectives.objective import objective
from components.objectives.tokens import UNUSABLE, TokenInputs
from components.policy.logprobs import distribution_stats

RATIOS = {
    "clip": {"kind": "clip"},
    "dual_clip": {"kind": "clip", "dual": 3.0},
    "gspo": {"kind": "gspo", "low": 0.1, "high": 0.2},
    "gspo_token": {"kind": "gspo_token", "low": 0.1, "high": 0.2},
    "gmpo": {"kind": "gmpo"},
    "cispo": {"kind": "cispo", "cap": 1.2},
    "cispo_rollout": {"kind": "cispo", "cap": 1.2, "anchor": "rollout"},
    "sapo": {"kind": "sapo"},
    "dppo_tv": {"kind": "dppo_tv", "delta": 0.02},
    "dppo_kl": {"kind": "dppo_kl", "delta": 0.002},
    "luspo": {"kind": "luspo", "low": 0.1, "high": 0.2},
    "vespo": {"kind": "vespo"},
    "topr": {"kind": "topr"},
    "dro": {"kind": "dro"},
}
AGGREGATIONS = {
    "token_mean": {"kind": "token_mean"},
    "sequence_mean": {"kind": "sequence_mean"},
    "prompt_mean": {"kind": "prompt_mean"},
    "fixed": {"kind": "fixed", "tokens": 7},
}
CORRECTIONS = {
    "none": None,
    "tis_token": {"kind": "tis_token", "cap": 1.1},
    "icepop": {"kind": "icepop", "low": 0.8, "high": 1.25},
    "tis_sequence_product": {"kind": "tis_sequence_product", "cap": 1.1},
    "tis_sequence_geometric": {"kind": "tis_sequence_geometric", "cap": 1.05},
    "mask_sequence_product": {"kind": "mask_sequence_product", "low": 0.5, "high": 2.0, "veto": 0.7},
    "mask_sequence_geometric": {"kind": "mask_sequence_geometric", "low": 0.9, "high": 1.1},
}
ADDED = {
    "k2": {"kl": {"kind": "k2", "beta": 0.1}},
    "k3": {"kl": {"kind": "k3", "beta": 0.1}},
    "k3_straight_through": {"kl": {"kind": "k3_straight_through", "beta": 0.1}},
    "k3_ratio": {"kl": {"kind": "k3_ratio", "beta": 0.1}},
    "k1_reward": {"kl": {"kind": "k1_reward", "beta": 0.1}},
    "entropy": {"entropy": {"coef": 0.1}},
    "off_policy_mask": {"off_policy_mask": {"delta": 0.05}},
    "clip_cov": {"selection": {"kind": "clip_cov"}},
    "kl_cov": {"selection": {"kind": "kl_cov", "coef": 0.5}},
    "top_entropy": {"selection": {"kind": "top_entropy"}},
}
EVERYTHING = settings(
    correction=CORRECTIONS["tis_token"],
    **ADDED["k3_ratio"],
    **ADDED["entropy"],
    **ADDED["off_policy_mask"],
    **ADDED["kl_cov"],
)
PLAIN = settings()

COMPOSITIONS = {
    **{
        name: [settings(ratio=ratio, aggregation=a, correction=CORRECTIONS["tis_token"]) for a in AGGREGATIONS.values()]
        + [settings(ratio=ratio, correction=c) for c in CORRECTIONS.values() if c != CORRECTIONS["tis_token"]]
        for name, ratio in RATIOS.items()
    },
    **{name: [settings(aggregation=a, **part) for a in AGGREGATIONS.values()] for name, part in ADDED.items()},
    "everything": [EVERYTHING],
}
"""Every ratio family with every aggregation and with every correction; every added term with every aggregation."""

ARRAYS = ("advantages", "rollout_logp", "old_logp", "ref_logp")
PLACE = (torch.tensor(0), torch.tensor(2))
JUNK = [math.nan, math.inf, -math.inf, 1e30, torch.finfo(torch.float32).min]


compositions = pytest.mark.parametrize("name", COMPOSITIONS)
"""An invariant holds for all settings of that name; what fails is said by the assertion."""


def same(found: tuple[float, Tensor], expected: tuple[float, Tensor]) -> bool:
    """Equal losses and gradients, up to rounding in fp64."""
    return found[0] == near(expected[0], 1e-10) and torch.allclose(found[1], expected[1], atol=1e-10)


def differ(found: tuple[float, Tensor], expected: tuple[float, Tensor]) -> bool:
    return not torch.allclose(found[1], expected[1], atol=1e-6)


# 1. On policy


@pytest.mark.parametrize("name", RATIOS)
def test_on_policy_every_ratio_has_the_gradient_of_reinforce_under_its_aggregation(name):
    for aggregation, correction in itertools.product(AGGREGATIONS.values(), CORRECTIONS.values()):
        chosen = settings(ratio=RATIOS[name], aggregation=aggregation, correction=correction)
        batch = toy(4, 1, 3, 2).weighed(chosen).on_policy()
        _, gradient = token_gradient(batch.logp(batch.weight), batch.inputs, chosen)
        assert torch.allclose(gradient, -batch.inputs.weights * batch.inputs.advantages, atol=1e-7), chosen


@pytest.mark.parametrize("name", ["off_policy_mask", "clip_cov", "top_entropy", "kl_cov", "k1_reward"])
def test_what_singles_tokens_out_changes_nothing_on_policy_where_it_keeps_them(name):
    chosen = settings(**ADDED[name])
    batch = toy(4, 1, 3, 2).weighed(chosen).on_policy()
    kept = batch.inputs._replace(selected=batch.inputs.mask)
    _, gradient = token_gradient(batch.logp(batch.weight), kept, chosen)
    assert torch.allclose(gradient, -batch.inputs.weights * batch.inputs.advantages, atol=1e-7)


@pytest.mark.parametrize("ratio", ["clip", "gspo", "gspo_token", "gmpo", "sapo"])
def test_with_one_update_a_batch_the_ratio_has_no_effect_at_all(ratio):
    """The ratio to the old policy is 1 then, however far the sampler is."""
    for advantage in (-1.3, 0.7):
        logp, inputs = sequence([0.0, 0.0, 0.0], advantage)
        inputs = inputs._replace(rollout_logp=inputs.old_logp - 0.5)
        gradient = token_gradient(logp, inputs, settings(ratio=RATIOS[ratio]))[1]
        assert torch.allclose(gradient, torch.full((1, 3), -advantage / 3, dtype=torch.float64), atol=1e-7)


# 2. Masked places


@compositions
def test_what_stands_in_masked_places_changes_neither_loss_nor_gradient(name):
    batch = toy(4, 0, 2, 3, width=5)
    mask, logp, entropy = batch.inputs.mask, batch.logp(batch.weight), batch.entropy(batch.weight)
    junk = torch.tensor(JUNK, dtype=torch.float64)

    def spoil(values: Tensor) -> Tensor:
        return torch.where(mask, values, junk)

    for chosen in COMPOSITIONS[name]:
        inputs = batch.weighed(chosen).inputs
        spoiled = inputs._replace(**{name: spoil(getattr(inputs, name)) for name in ARRAYS})
        loss, gradient = token_gradient(logp, inputs, chosen, entropy=entropy)
        found, slope = token_gradient(spoil(logp), spoiled, chosen, entropy=spoil(entropy))
        assert found == loss, chosen
        assert torch.equal(slope, gradient), chosen
        assert (slope[~mask] == 0).all(), chosen


# 3. Padding


@compositions
def test_padding_columns_and_rows_change_neither_loss_nor_gradient(name):
    batch = toy(4, 1, 3, 2, seed=5)

    def wider(values: Tensor) -> Tensor:
        ahead = (0, 0) if values is batch.states else ()
        columns = () if values is batch.groups else (0, 3)
        fill = 99 if values is batch.groups else 0 if values.dtype in (torch.bool, torch.int64) else 7.0
        return pad(values, (*ahead, *columns, 0, 2), value=fill)

    wide = batch.map(wider)
    for chosen in COMPOSITIONS[name]:
        assert same(run(wide.weighed(chosen), chosen), run(batch.weighed(chosen), chosen)), chosen


# 4. Micro-batches


def split(batch: Toy, *sizes: int) -> list[Toy]:
    """Micro-batches of that many rows, each without the columns that are padding in all of its rows."""
    parts, start = [], 0
    for size in sizes:
        rows = slice(start, start + size)
        width = int(batch.inputs.mask[rows].sum(1).max())
        parts.append(batch.map(lambda v, r=rows, w=width: v[r] if v.dim() == 1 else v[r, :w]))
        start += size
    return parts


@compositions
def test_micro_batches_add_up_to_the_whole_batch_under_any_split(name):
    for chosen in COMPOSITIONS[name]:
        batch = toy(4, 1, 6, 2, 5, 3, 1, 6, seed=2).weighed(chosen)
        whole = run(batch, chosen)
        for sizes in ([1] * 8, [2] * 4, [5, 3]):
            losses, gradients = zip(*(run(part, chosen) for part in split(batch, *sizes)), strict=True)
            assert same((sum(losses), torch.stack(gradients).sum(0)), whole), (sizes, chosen)


# 5. Order


@compositions
def test_shuffling_the_rows_changes_nothing(name):
    batch = toy(4, 1, 3, 2, 5, seed=3)
    order = torch.tensor([3, 0, 4, 2, 1])
    shuffled = batch.map(lambda values: values[order])
    for chosen in COMPOSITIONS[name]:
        assert same(run(shuffled.weighed(chosen), chosen), run(batch.weighed(chosen), chosen)), chosen


# 6. Precision


def test_log_probabilities_of_half_precision_logits_are_compared_in_full_precision():
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(500, (64,), generator=generator)
    logits = (4 * torch.randn(64, 500, generator=generator)).bfloat16()
    changed = logits + 0.05 * torch.randn(64, 500, generator=generator).bfloat16()

    def gap(first: Tensor, second: Tensor) -> Tensor:
        return (distribution_stats(first, ids, 1.0).logp - distribution_stats(second, ids, 1.0).logp).double()

    exact, halved = (
        (torch.log_softmax(changed.to(d), -1) - torch.log_softmax(logits.to(d), -1)).gather(-1, ids[:, None])[:, 0]
        for d in (torch.float64, torch.bfloat16)
    )
    assert distribution_stats(logits, ids, 1.0).logp.dtype == torch.float32
    assert (gap(changed, logits) - exact).abs().max() < 1e-5
    assert (halved.double() - exact).abs().max() > 1e-2  # what it would be otherwise


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_log_probabilities_in_half_precision_are_refused(dtype):
    logp, inputs = sequence([0.1], 1.0)
    with pytest.raises(ValueError, match="rounding noise"):
        objective(logp.to(dtype), inputs, PLAIN)


@compositions
def test_single_precision_gives_the_loss_and_gradient_of_double(name):
    for chosen in COMPOSITIONS[name]:
        batch = toy(4, 1, 3, 2).weighed(chosen)
        single = batch.map(lambda v: v.float() if v.is_floating_point() else v)._replace(weight=batch.weight.float())
        (loss, gradient), (exact, slope) = run(single, chosen), run(batch, chosen)
        assert gradient.dtype == torch.float32
        assert loss == near(exact, 1e-5), chosen
        assert torch.allclose(gradient.double(), slope, atol=1e-5), chosen


# 7. Finite differences


DETACHED = {"gspo_token", "cispo", "cispo_rollout", "vespo", "topr", "k3_straight_through", "clip_cov"}
"""What has not the gradient of its own value, or (Clip-Cov) what top entropy has; looked at below."""


@pytest.mark.parametrize("name", sorted(COMPOSITIONS.keys() - DETACHED))
def test_the_gradient_is_the_one_that_finite_differences_find(name):
    """Three tokens, four actions, through the softmax."""
    batch = toy(3, seed=1)
    logits = (batch.states @ batch.weight).detach().requires_grad_()
    for chosen in COMPOSITIONS[name]:
        inputs = batch.weighed(chosen).inputs

        def loss(logits: Tensor, chosen=chosen, inputs=inputs) -> Tensor:
            distribution = torch.log_softmax(logits, -1)
            logp = distribution.gather(-1, batch.actions[..., None]).squeeze(-1)
            entropy = -(distribution.exp() * distribution).sum(-1)
            return objective(logp, inputs, chosen, entropy=entropy).loss

        assert torch.autograd.gradcheck(loss, logits, eps=1e-7, atol=1e-5, fast_mode=True), chosen


@pytest.mark.parametrize("anchor", ["old", "rollout"])
def test_where_a_weight_is_detached_the_gradient_is_the_one_with_the_weight_held_still(anchor):
    chosen = settings(ratio={"kind": "cispo", "cap": 1.2, "anchor": anchor})
    batch = toy(3, seed=1).weighed(chosen)
    logp = batch.logp(batch.weight)
    ratio = (logp - getattr(batch.inputs, f"{anchor}_logp")).exp().clamp(max=1.2)
    expected = -batch.inputs.weights * ratio * batch.inputs.advantages
    assert torch.allclose(token_gradient(logp, batch.inputs, chosen)[1], expected)
    assert (ratio == 1.2).any()
    assert (ratio < 1.2).any()


@pytest.mark.parametrize(
    ("form", "meaning"),
    [
        (settings(ratio=RATIOS["gspo_token"]), settings(ratio=RATIOS["gspo"])),
        (settings(**ADDED["k3_straight_through"]), settings(**ADDED["k2"])),
    ],
    ids=["gspo_token", "k3_straight_through"],
)
def test_a_straight_through_form_has_the_gradient_of_what_it_stands_for(form, meaning):
    batch = toy(4, 1, 3, 2).weighed(settings(aggregation=AGGREGATIONS["sequence_mean"]))
    assert torch.allclose(run(batch, form)[1], run(batch, meaning)[1])


# Numbers that are not finite, where they count


@compositions
def test_a_number_that_is_not_finite_leaves_its_token_out_and_never_makes_the_loss_so(name):
    batch = toy(4, 1, 3, 2)
    entropy = batch.entropy(batch.weight)
    for chosen in COMPOSITIONS[name]:
        inputs = batch.weighed(chosen).inputs
        arrays = {"logp": batch.logp(batch.weight), **{name: getattr(inputs, name) for name in ARRAYS}}
        for (name_of, values), junk in zip(arrays.items(), JUNK, strict=True):
            spoiled = {**arrays, name_of: values.index_put(PLACE, torch.tensor(junk, dtype=torch.float64))}
            logp = spoiled.pop("logp").requires_grad_()
            terms = objective(logp, inputs._replace(**spoiled), chosen, entropy=entropy)
            (gradient,) = torch.autograd.grad(terms.loss, logp)
            assert terms.loss.isfinite(), (name_of, junk, chosen)
            assert gradient.isfinite().all(), (name_of, junk, chosen)
            assert gradient[PLACE] == 0, (name_of, junk, chosen)
            assert terms.nonfinite.nonzero().tolist() == [[0, 2]], (name_of, junk, chosen)


@pytest.mark.parametrize("name", [*ARRAYS, "logp"])
def test_the_other_tokens_of_the_sequence_keep_their_weight(name):
    """Denominators stay: the loss is the one in which that token says nothing."""
    batch = toy(4, 1, 3, 2).weighed(EVERYTHING)
    logp, entropy = batch.logp(batch.weight), batch.entropy(batch.weight)
    masked = batch.inputs.mask.clone()
    masked[0, 2] = False
    expected = token_gradient(logp, batch.inputs._replace(mask=masked), EVERYTHING, entropy=entropy)
    spoiled = torch.where(masked | ~batch.inputs.mask, getattr(batch.inputs, name, logp), math.nan)
    inputs = batch.inputs if name == "logp" else batch.inputs._replace(**{name: spoiled})
    found = token_gradient(spoiled if name == "logp" else logp, inputs, EVERYTHING, entropy=entropy)
    assert found[0] == expected[0]
    assert torch.equal(found[1], expected[1])


def test_an_entropy_that_is_not_finite_matters_only_where_entropy_is_rewarded():
    batch = toy(3).weighed(PLAIN)
    entropy = torch.tensor([[1.0, math.nan, 1.0]])
    logp = batch.logp(batch.weight)
    rewarded = objective(logp, batch.inputs, settings(**ADDED["entropy"]), entropy=entropy)
    assert rewarded.loss.isfinite()
    assert rewarded.nonfinite.tolist() == [[False, True, False]]
    assert not objective(logp, batch.inputs, PLAIN, entropy=entropy).nonfinite.any()


def test_an_action_that_the_policy_cannot_take_any_more_leaves_the_logits_a_finite_gradient():
    logits = torch.tensor([[[1.0, 0.0, -torch.inf], [0.5, 0.0, 0.0]]], requires_grad=True)
    stats = distribution_stats(logits, torch.tensor([[2, 0]]), 1.0, entropy_grad=True)
    zeros = torch.zeros(1, 2)
    inputs = TokenInputs(torch.ones(1, 2, dtype=torch.bool), zeros + 0.5, zeros + 1, zeros - 1, zeros - 1)
    terms = objective(stats.logp, inputs, settings(**ADDED["entropy"]), entropy=stats.entropy)
    terms.loss.backward()
    assert terms.nonfinite.tolist() == [[True, False]]
    assert terms.loss.isfinite()
    assert logits.grad.isfinite().all()


@given(st.sampled_from([chosen for every in COMPOSITIONS.values() for chosen in every]), st.integers(0, 2**32))
def test_no_composition_ever_makes_a_loss_that_is_not_finite(chosen, seed):
    generator = torch.Generator().manual_seed(seed)
    pool = torch.tensor([*JUNK, 0.0, -1.0, 1.0, -20.0, 1e-30, -1e5, -UNUSABLE, 100.0, -0.5])
    numbers = pool[torch.randint(len(pool), (6, 4, 3), generator=generator)]
    logp, advantages, rollout, old, ref, entropy = numbers
    mask = torch.rand(4, 3, generator=generator) < 0.7
    weights = weights_of(mask, torch.tensor([0, 0, 1, 1]), chosen).float()
    inputs = TokenInputs(mask, weights, advantages, rollout, old, ref, None, mask)
    terms = objective(logp.requires_grad_(), inputs, chosen, entropy=entropy)
    (gradient,) = torch.autograd.grad(terms.loss, logp)
    assert terms.loss.isfinite()
    assert gradient.isfinite().all()
    assert not (terms.nonfinite & ~mask).any()


def test_what_counts_as_not_finite_is_far_beyond_any_real_number():
    for value, left_out in ((0.9 * UNUSABLE, False), (1.1 * UNUSABLE, True)):
        logp, inputs = sequence([0.0], 1.0)
        terms = objective(logp, inputs._replace(rollout_logp=torch.full_like(inputs.old_logp, -value)), PLAIN)
        assert terms.nonfinite.item() == left_out


# Nothing to learn from


@compositions
def test_a_batch_without_a_token_has_a_loss_and_gradient_of_exactly_zero(name):
    for empty in (toy(0, 0, 0, width=3), toy(0, 0, width=0), toy(width=3), toy(width=0)):
        for chosen in COMPOSITIONS[name]:
            loss, gradient = run(empty.weighed(chosen), chosen)
            assert loss == 0.0, chosen
            assert (gradient == 0).all(), chosen


@compositions
def test_a_completion_without_a_token_changes_nothing_for_the_others(name):
    batch = toy(4, 2, 3, 0, width=4)
    others = batch.map(lambda values: values[:3])
    for chosen in COMPOSITIONS[name]:
        assert same(run(batch.weighed(chosen), chosen), run(others.weighed(chosen), chosen)), chosen


# Composition


def test_equal_sampler_and_trainer_give_the_uncorrected_loss_to_the_bit():
    batch = toy(4, 1, 3, 2).weighed(PLAIN)
    batch = batch._replace(inputs=batch.inputs._replace(rollout_logp=batch.inputs.old_logp))
    plain = run(batch, PLAIN)
    for correction in CORRECTIONS.values():
        loss, gradient = run(batch, settings(correction=correction))
        assert loss == plain[0]
        assert torch.equal(gradient, plain[1])


def test_the_correction_multiplies_the_token_loss_outside_the_clip():
    batch = toy(4, 1, 3, 2, noise=1.0).weighed(PLAIN)
    logp, inputs = batch.logp(batch.weight), batch.inputs
    weights = (inputs.old_logp - inputs.rollout_logp).exp().clamp(max=1.1)
    corrected, plain = (
        token_gradient(logp, inputs, settings(correction=CORRECTIONS[name]))[1] for name in ("tis_token", "none")
    )
    assert torch.allclose(corrected, plain * weights)
    assert differ((0, corrected), (0, plain))


def test_with_an_unbounded_cap_the_gradient_on_policy_is_exact_importance_sampling():
    chosen = settings(correction={"kind": "tis_token", "cap": 1e6})
    batch = toy(4, 1, 3, 2).weighed(chosen)
    logp = batch.logp(batch.weight)
    inputs = batch.inputs._replace(old_logp=logp.detach())
    expected = -inputs.weights * inputs.advantages * (logp - inputs.rollout_logp).exp()
    assert torch.allclose(token_gradient(logp, inputs, chosen)[1], expected)


@pytest.mark.parametrize("name", sorted(CORRECTIONS.keys() - {"none"}))
def test_no_gradient_flows_through_a_correction(name):
    chosen = settings(correction=CORRECTIONS[name])
    batch = toy(4, 1, 3, 2).weighed(chosen)
    sampler = batch.inputs.rollout_logp.clone().requires_grad_()
    logp = batch.logp(batch.weight.requires_grad_())
    loss = objective(logp, batch.inputs._replace(rollout_logp=sampler), chosen).loss
    assert torch.autograd.grad(loss, sampler, allow_unused=True) == (None,)


def test_the_kl_term_is_added_after_the_advantage_and_scales_with_its_coefficient():
    batch = toy(4, 1, 3, 2).weighed(PLAIN)
    logp, inputs = batch.logp(batch.weight), batch.inputs
    chosen = settings(**ADDED["k2"], correction=CORRECTIONS["icepop"])
    plain = token_gradient(logp, inputs, settings(correction=CORRECTIONS["icepop"]))[1]
    expected = inputs.weights * (logp - inputs.ref_logp)
    for beta in (0.0, 0.1, 0.2):
        found = token_gradient(logp, inputs, chosen, coefficients=Coefficients(beta, 0.0))[1]
        assert torch.allclose(found - plain, beta * expected)
    assert torch.allclose(token_gradient(logp, inputs, chosen)[1] - plain, 0.1 * expected)


def test_kl_in_the_reward_adds_nothing_to_the_loss():
    batch = toy(4, 1, 3, 2).weighed(PLAIN)
    assert same(run(batch, settings(**ADDED["k1_reward"])), run(batch, PLAIN))


def test_the_entropy_bonus_raises_entropy():
    chosen = settings(entropy={"coef": 1.0})
    batch = toy(4, 1, 3, 2).weighed(chosen)
    batch = batch._replace(inputs=batch.inputs._replace(advantages=torch.zeros_like(batch.inputs.advantages)))

    def entropy(weight: Tensor) -> float:
        return (batch.entropy(weight) * batch.inputs.weights).sum().item()

    loss, gradient = run(batch, chosen)
    assert loss == near(-entropy(batch.weight), 1e-9)
    assert entropy(batch.weight - 0.01 * gradient) > entropy(batch.weight)


def test_a_bonus_whose_coefficient_is_zero_needs_no_entropy():
    batch = toy(3).weighed(PLAIN)
    chosen = settings(entropy={"coef": 0.0, "target": {"value": 0.2}})
    assert objective(batch.logp(batch.weight), batch.inputs, chosen).loss.isfinite()


@pytest.mark.parametrize("name", ["clip_cov", "top_entropy"])
def test_only_selected_tokens_have_a_policy_gradient_while_the_kl_sees_all(name):
    batch = toy(4, 3, 4, 4, seed=1).weighed(PLAIN)
    logp, inputs = batch.logp(batch.weight), batch.inputs
    plain, kl, both = (
        token_gradient(logp, inputs, settings(**parts))[1]
        for parts in (ADDED[name], ADDED["k2"], {**ADDED[name], **ADDED["k2"]})
    )
    without = token_gradient(logp, inputs, PLAIN)[1]
    assert torch.equal(plain, torch.where(inputs.selected, without, 0.0))
    assert torch.allclose(both - plain, kl - without)
    assert differ((0, plain), (0, without))


def test_kl_cov_penalises_any_move_of_the_selected_tokens():
    chosen = settings(**ADDED["kl_cov"])
    batch = toy(4, 3, 4, 4, seed=1).weighed(PLAIN)
    logp, inputs = batch.logp(batch.weight), batch.inputs
    added = token_gradient(logp, inputs, chosen)[1] - token_gradient(logp, inputs, PLAIN)[1]
    expected = 0.5 * inputs.weights * (logp - inputs.old_logp).sign() * inputs.selected
    assert torch.allclose(added, expected)


def test_the_pair_of_deepseek_v3_2_drops_bad_sequences_that_the_policy_has_left():
    """OPSM with the KL estimate that is right off policy; the KL term keeps its say over dropped sequences."""
    chosen = settings(off_policy_mask={"delta": 0.5}, **ADDED["k3_ratio"])
    for advantage, dropped in ((-1.0, True), (1.0, False)):
        logp, inputs = sequence([-0.7, -0.9], advantage)
        inputs = inputs._replace(ref_logp=inputs.old_logp)
        terms = objective(logp, inputs, chosen)
        assert terms.rejected.tolist() == [[dropped, dropped]]
    kl_only = settings(**ADDED["k3_ratio"])
    logp, inputs = sequence([-0.7, -0.9], -1.0)
    inputs = inputs._replace(ref_logp=inputs.old_logp)
    neutral = inputs._replace(advantages=torch.zeros_like(inputs.advantages))
    assert torch.allclose(token_gradient(logp, inputs, chosen)[1], token_gradient(logp, neutral, kl_only)[1])


@pytest.mark.parametrize("gap", [0.6, 0.4])
def test_opsm_is_measured_from_the_sampler_so_stale_completions_are_dropped_in_the_first_update(gap):
    chosen = settings(off_policy_mask={"delta": 0.5})
    logp, inputs = sequence([0.0, 0.0], -1.0)
    stale = inputs._replace(rollout_logp=inputs.old_logp + gap)
    assert objective(logp, stale, chosen).rejected.tolist() == [[gap > 0.5] * 2]


def test_tokens_that_a_correction_dropped_are_reported_and_still_count_in_the_denominators():
    chosen = settings(correction={"kind": "icepop", "low": 0.5, "high": 5.0})
    logp, inputs = sequence([0.0, 0.0, 0.0], 1.0)
    inputs = inputs._replace(rollout_logp=inputs.old_logp - torch.tensor([[1.0, 3.0, 0.25]], dtype=torch.float64).log())
    assert objective(logp, inputs, chosen).rejected.tolist() == [[False, False, True]]
    assert token_gradient(logp, inputs, chosen)[1][0].tolist() == near([-1 / 3, -1.0, 0.0], 1e-9)


# Tokens that were not drawn from the sampler's distribution


FORCED = torch.tensor([[False, True, False]])


@pytest.mark.parametrize("name", RATIOS)
@pytest.mark.parametrize("junk", [math.nan, -math.inf, -50.0, -0.1])
def test_the_samplers_number_of_a_forced_token_changes_nothing(name, junk):
    batch = toy(3, seed=1).weighed(PLAIN)
    logp, inputs = batch.logp(batch.weight), batch.inputs._replace(forced=FORCED)
    spoiled = inputs._replace(rollout_logp=torch.where(FORCED, junk, inputs.rollout_logp))
    for chosen in COMPOSITIONS[name]:
        found, expected = (token_gradient(logp, tokens, chosen) for tokens in (spoiled, inputs))
        assert found[0] == expected[0], chosen
        assert torch.equal(found[1], expected[1]), chosen


def test_a_forced_token_has_the_weight_of_no_gap_and_goes_with_its_sequence():
    logp, inputs = sequence([0.0, 0.0, 0.0], 1.0)
    far = inputs._replace(rollout_logp=inputs.old_logp - 3.0, forced=FORCED)
    icepop = settings(correction={"kind": "icepop"})
    dropped = settings(correction={"kind": "mask_sequence_product", "low": 0.5, "high": 2.0})
    assert objective(logp, far, icepop).rejected.tolist() == [[True, False, True]]
    assert objective(logp, far, dropped).rejected.all()


# What is missing


@pytest.mark.parametrize(
    ("name", "missing"), [("k2", "ref_logp"), ("entropy", "needs the entropy"), ("top_entropy", "selection of tokens")]
)
def test_a_part_without_what_it_needs_is_an_error(name, missing):
    logp, inputs = sequence([0.1, 0.2], 1.0)
    with pytest.raises(ValueError, match=missing):
        objective(logp, inputs, settings(**ADDED[name]))
