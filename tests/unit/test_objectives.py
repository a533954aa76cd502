"""The objective, against numbers worked by hand and invariants that every loss must have."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from components.config.objective import ClipRatio, GrpoAdvantage, KlLoss, ObjectiveSettings, TokenTis
from components.objectives import ADVANTAGES, AGGREGATIONS, CORRECTIONS, KLS, RATIOS, TokenInputs, objective
from components.objectives.advantages import grpo
from components.objectives.aggregation import sequence_mean, token_mean
from components.objectives.corrections import importance, tis_token
from components.objectives.kl import k2, k3, k3_straight_through
from components.objectives.ratios import clip

CLIP = ClipRatio(low=0.2, high=0.28)
REWARDS = st.lists(st.integers(-8, 8).map(lambda n: n / 4), min_size=2, max_size=16)


def advantages(rewards: list[float], *, scorable: list[bool] | None = None, **settings: object) -> Tensor:
    """Of one group."""
    mask = torch.tensor([scorable or [True] * len(rewards)])
    return grpo(torch.tensor([rewards]), mask, GrpoAdvantage.model_validate(settings))[0]


def near(expected: object, tolerance: float = 1e-4) -> object:
    return pytest.approx(expected, abs=tolerance)


# Advantages


@pytest.mark.parametrize(
    ("std", "expected"),
    [
        ("population", [1.7321, -0.5774, -0.5774, -0.5774]),
        ("unbiased", [1.5, -0.5, -0.5, -0.5]),
        ("none", [0.75, -0.25, -0.25, -0.25]),
    ],
)
def test_worked_advantages_of_one_right_in_four(std, expected):
    assert advantages([1.0, 0, 0, 0], std=std).tolist() == near(expected)


@pytest.mark.parametrize(
    ("std", "eps", "loser"),
    [
        ("population", 1e-4, -1.407),
        ("population", 1e-6, -1.728),
        ("unbiased", 1e-4, -1.25),
        ("none", 1e-6, -0.00075),
    ],
)
def test_a_difference_of_a_thousandth_becomes_a_full_size_update_unless_the_std_is_left_out(std, eps, loser):
    assert advantages([1, 1, 1, 0.999], std=std, eps=eps)[3].item() == pytest.approx(loser, rel=1e-3)


@pytest.mark.parametrize(
    ("size", "population", "unbiased"),
    [(8, 2.6458, 2.4749), (16, 3.873, 3.75), (64, 7.937, 7.875), (128, 11.269, 11.225)],
)
def test_the_advantage_of_the_only_winner_grows_with_the_group(size, population, unbiased):
    rewards = [1.0] + [0.0] * (size - 1)
    assert advantages(rewards, std="population")[0].item() == pytest.approx(population, rel=1e-4)
    assert advantages(rewards, std="unbiased")[0].item() == pytest.approx(unbiased, rel=1e-4)


def test_without_std_it_is_the_leave_one_out_baseline_shrunk():
    rewards = [1.0, 0, 0, 0.5]
    leave_one_out = [r - (sum(rewards) - r) / 3 for r in rewards]
    assert advantages(rewards, std="none").tolist() == near([3 / 4 * a for a in leave_one_out])


@given(REWARDS, st.sampled_from(["population", "unbiased", "none"]))
def test_advantages_of_a_group_add_up_to_zero(rewards, std):
    assert advantages(rewards, std=std).sum().item() == near(0)


@given(REWARDS.filter(lambda rewards: len(set(rewards)) > 1))
def test_squares_add_up_to_the_group_size_or_one_less(rewards):
    size = len(rewards)
    assert advantages(rewards, std="population").square().sum().item() == near(size, 1e-3)
    assert advantages(rewards, std="unbiased").square().sum().item() == near(size - 1, 1e-3)


@given(REWARDS, st.integers(1, 20), st.integers(-5, 5))
def test_scale_and_offset_of_the_reward_do_not_matter_when_the_std_divides(rewards, scale, offset):
    changed = [scale * r + offset for r in rewards]
    assert advantages(changed).tolist() == near(advantages(rewards).tolist(), 1e-3)


@given(st.floats(-10, 10, width=32), st.integers(1, 64), st.sampled_from(["population", "unbiased", "none"]))
def test_a_group_of_equal_rewards_gets_exactly_zero(reward, size, std):
    assert advantages([reward] * size, std=std).tolist() == [0.0] * size


@given(REWARDS.flatmap(lambda rewards: st.tuples(st.just(rewards), st.permutations(range(len(rewards))))))
def test_shuffling_a_group_shuffles_its_advantages(case):
    rewards, order = case
    shuffled = advantages([rewards[i] for i in order]).tolist()
    assert shuffled == near([advantages(rewards).tolist()[i] for i in order], 1e-5)


def test_groups_do_not_see_each_other():
    rewards = torch.tensor([[1.0, 0, 0, 0], [0, 0, 0, 5.0]])
    both = grpo(rewards, torch.ones(2, 4, dtype=torch.bool), GrpoAdvantage())
    assert both.tolist() == [advantages(row.tolist()).tolist() for row in rewards]


@pytest.mark.parametrize("std", ["population", "unbiased", "none"])
@pytest.mark.parametrize("junk", [0.0, 100.0, float("nan"), float("inf")])
def test_unscorable_completions_count_neither_in_mean_nor_in_std_and_get_zero(std, junk):
    found = advantages([1.0, junk, 0.0, 0.0], scorable=[True, False, True, True], std=std).tolist()
    alone = advantages([1.0, 0.0, 0.0], std=std).tolist()
    assert found == near([alone[0], 0.0, alone[1], alone[2]], 1e-6)
    assert found[1] == 0.0


@pytest.mark.parametrize("scorable", [[True, False, False], [False, False, False]])
def test_a_group_with_fewer_than_two_scorable_completions_teaches_nothing(scorable):
    assert advantages([1.0, 0.0, 0.5], scorable=scorable).tolist() == [0.0, 0.0, 0.0]


# Ratio


def clip_gradient(ratio: float, advantage: float, settings: ClipRatio = CLIP) -> float:
    """Derivative of the objective (minus the loss) with respect to the log-probability."""
    logp = torch.tensor([[ratio]]).log().requires_grad_()
    clip(logp, torch.zeros(1, 1), torch.tensor([[advantage]]), settings).loss.backward()
    return -logp.grad.item()


@pytest.mark.parametrize(
    ("ratio", "positive", "negative"),
    [(0.7, 0.7, 0.0), (1.27, 1.27, -1.27), (1.29, 0.0, -1.29), (1.5, 0.0, -1.5), (1.0, 1.0, -1.0)],
)
def test_the_clip_removes_a_gradient_only_where_it_would_lead_further_outside(ratio, positive, negative):
    assert clip_gradient(ratio, 1.0) == near(positive)
    assert clip_gradient(ratio, -1.0) == near(negative)


def test_clip_higher_keeps_the_gradient_that_a_symmetric_clip_removes():
    assert clip_gradient(1.25, 1.0) == near(1.25)
    assert clip_gradient(1.25, 1.0, ClipRatio(low=0.2, high=0.2)) == 0.0


@given(st.floats(0.05, 5), st.floats(0, 2), st.floats(0, 0.9))
def test_each_bound_acts_on_one_sign_of_the_advantage(ratio, high, low):
    assert clip_gradient(ratio, -1.0, ClipRatio(low=0.2, high=high)) == clip_gradient(ratio, -1.0)
    assert clip_gradient(ratio, 1.0, ClipRatio(low=low, high=0.28)) == clip_gradient(ratio, 1.0)


def test_there_is_no_dual_clip():
    assert clip_gradient(5.0, -1.0) == near(-5.0)


def test_the_clip_indicators_count_the_removed_gradients():
    ratios = torch.tensor([[0.7, 1.5, 0.7, 1.5, 1.0]])
    signs = torch.tensor([[1.0, 1.0, -1.0, -1.0, 1.0]])
    tokens = clip(ratios.log(), torch.zeros(1, 5), signs, CLIP)
    assert tokens.clipped_high.tolist() == [[False, True, False, False, False]]
    assert tokens.clipped_low.tolist() == [[False, False, True, False, False]]
    assert tokens.ratio.tolist() == [near([0.7, 1.5, 0.7, 1.5, 1.0])]


@pytest.mark.parametrize("gap", [-1e4, 1e4])
def test_an_absurd_log_ratio_stays_finite(gap):
    tokens = clip(torch.tensor([[gap]]), torch.zeros(1, 1), torch.tensor([[-1.0]]), CLIP)
    assert torch.isfinite(tokens.loss).all()


# Aggregation


def lengths(*sizes: int) -> Tensor:
    return torch.arange(max(sizes))[None, :] < torch.tensor(sizes)[:, None]


def test_worked_aggregation_of_a_short_and_a_long_answer():
    mask = lengths(10, 100)
    loss = torch.tensor([[0.5], [0.1]]).expand(2, 100)
    assert (loss * token_mean(mask)).sum().item() == near(0.13636, 1e-5)
    assert (loss * sequence_mean(mask)).sum().item() == near(0.300, 1e-5)


def test_worked_weights_of_a_token():
    mask = lengths(10, 100)
    assert token_mean(mask)[:, 0].tolist() == near([1 / 110, 1 / 110], 1e-6)
    assert sequence_mean(mask)[:, 0].tolist() == near([0.05, 0.005], 1e-6)


@pytest.mark.parametrize("name", list(AGGREGATIONS))
@given(st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any))
def test_the_weights_of_a_batch_add_up_to_one_and_padding_has_none(name, sizes):
    mask = lengths(*sizes)
    weights = AGGREGATIONS[name](mask)
    assert weights.sum().item() == near(1, 1e-5)
    assert (weights[~mask] == 0).all()


@pytest.mark.parametrize("name", list(AGGREGATIONS))
def test_padding_columns_and_empty_rows_change_no_weight(name):
    mask = lengths(3, 5, 1)
    padded = torch.nn.functional.pad(mask, (0, 4, 0, 2))
    assert torch.equal(AGGREGATIONS[name](padded)[:3, :5], AGGREGATIONS[name](mask))


@pytest.mark.parametrize("name", list(AGGREGATIONS))
def test_a_batch_without_a_token_weighs_nothing_and_is_not_nan(name):
    assert AGGREGATIONS[name](torch.zeros(2, 3, dtype=torch.bool)).tolist() == [[0.0] * 3] * 2


def test_doubling_an_answer_halves_its_tokens_weight_under_sequence_mean_only():
    short, long = lengths(10, 10), lengths(20, 10)
    assert sequence_mean(long)[0, 0] == sequence_mean(short)[0, 0] / 2
    assert token_mean(long)[0, 0] == token_mean(long)[1, 0]


# KL: three actions, enumerated


POLICY, REFERENCE = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.4, 0.4, 0.2])
REVERSE = [0.098938, -0.093885, -0.005053]
"""Gradient of KL(policy || reference) with respect to the logits."""


def expected_kl(estimator) -> tuple[float, list[float]]:
    """Value and gradient with respect to the logits, in expectation over actions of the policy."""
    logits = POLICY.log().requires_grad_()
    logp = torch.log_softmax(logits, 0)
    value = (POLICY * estimator(logp, REFERENCE.log())).sum()
    value.backward()
    return value.item(), logits.grad.tolist()


@pytest.mark.parametrize(
    ("estimator", "value", "gradient"),
    [
        (k2, 0.024862, REVERSE),
        (k3, 0.025267, [0.1, -0.1, 0.0]),
        (k3_straight_through, 0.025267, REVERSE),
    ],
)
def test_worked_value_and_gradient_of_the_kl_estimators(estimator, value, gradient):
    found, slope = expected_kl(estimator)
    assert (found, slope) == (near(value, 1e-6), near(gradient, 2e-6))


def test_every_kl_loss_has_the_gradient_of_the_reverse_kl():
    assert all(expected_kl(estimator)[1] == near(REVERSE, 2e-6) for estimator in KLS.values())


@pytest.mark.parametrize("gap", [-30.0, 30.0])
@pytest.mark.parametrize("name", list(KLS))
def test_a_policy_far_away_has_a_finite_kl_whose_gradient_leads_back(name, gap):
    logp = torch.tensor([gap], requires_grad=True)
    value = KLS[name](logp, torch.zeros(1))
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert logp.grad.item() == gap


@given(st.floats(-5, 5))
def test_k3_is_never_negative(gap):
    assert k3(torch.tensor(gap), torch.tensor(0.0)).item() >= -1e-6


# Sampler correction


def test_worked_truncated_importance_weights():
    old = torch.tensor([1.0, 3.0, 0.25]).log()
    assert importance(old, torch.zeros(3)).tolist() == near([1, 3, 0.25])
    assert tis_token(old, torch.zeros(3), TokenTis(cap=2.0)).tolist() == near([1, 2, 0.25])
    assert tis_token(old, torch.zeros(3), TokenTis(cap=1e9)).tolist() == near([1, 3, 0.25])


def test_no_gradient_flows_through_the_correction():
    old = torch.zeros(3, requires_grad=True)
    assert not tis_token(old, torch.ones(3), TokenTis()).requires_grad


# The whole objective


EVERYTHING = ObjectiveSettings(kl=KlLoss(kind="k2", beta=0.1), correction=TokenTis(cap=1.5))
PLAIN = ObjectiveSettings(kl=None, correction=None)


def toy(rows: int = 3, width: int = 4, seed: int = 0) -> tuple[Tensor, TokenInputs]:
    """Log-probabilities near each other, ragged masks, token-mean weights."""
    generator = torch.Generator().manual_seed(seed)

    def noise(scale: float) -> Tensor:
        return scale * torch.randn(rows, width, generator=generator, dtype=torch.float64)

    mask = lengths(*(1 + i % width for i in range(1, rows + 1)))
    mask = torch.nn.functional.pad(mask, (0, width - mask.shape[1]))
    old = -1 + noise(0.3)
    inputs = TokenInputs(mask, token_mean(mask).double(), noise(1.0), old + noise(0.3), old, old + noise(0.2))
    return (old + noise(0.4)).requires_grad_(), inputs


def gradient(logp: Tensor, inputs: TokenInputs, settings: ObjectiveSettings) -> tuple[float, Tensor]:
    logp = logp.detach().clone().requires_grad_()
    loss = objective(logp, inputs, settings).loss
    loss.backward()
    return loss.item(), logp.grad


@pytest.mark.parametrize("aggregation", list(AGGREGATIONS))
@pytest.mark.parametrize("settings", [PLAIN, ObjectiveSettings(), EVERYTHING.model_copy(update={"kl": None})])
def test_on_policy_every_objective_is_reinforce_under_the_same_aggregation(aggregation, settings):
    logp, inputs = toy()
    weights = AGGREGATIONS[aggregation](inputs.mask).double()
    inputs = inputs._replace(old_logp=logp.detach(), rollout_logp=logp.detach(), weights=weights)
    assert torch.allclose(gradient(logp, inputs, settings)[1], -weights * inputs.advantages * inputs.mask)


def test_the_gradient_is_the_one_that_finite_differences_find():
    _, inputs = toy(rows=3, width=2, seed=3)
    logits = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64, requires_grad=True)

    def loss(logits: Tensor) -> Tensor:
        return objective(torch.log_softmax(logits, -1)[..., 0], inputs, EVERYTHING).loss

    assert torch.autograd.gradcheck(loss, logits, eps=1e-7, atol=1e-6)


@pytest.mark.parametrize("junk", [float("nan"), float("inf"), float("-inf"), 1e30])
@pytest.mark.parametrize("settings", [PLAIN, EVERYTHING])
def test_what_stands_in_masked_places_changes_neither_loss_nor_gradient(settings, junk):
    logp, inputs = toy()
    loss, slope = gradient(logp, inputs, settings)

    def spoil(values: Tensor) -> Tensor:
        return torch.where(inputs.mask, values, junk)

    names = ("advantages", "rollout_logp", "old_logp", "ref_logp")
    spoiled = inputs._replace(**{name: spoil(getattr(inputs, name)) for name in names})
    loss_again, slope_again = gradient(spoil(logp), spoiled, settings)
    assert loss_again == loss
    assert torch.equal(slope_again, slope)
    assert (slope_again[~inputs.mask] == 0).all()


@pytest.mark.parametrize("aggregation", list(AGGREGATIONS))
def test_padding_columns_change_neither_loss_nor_gradient(aggregation):
    logp, inputs = toy()

    def padded(values: Tensor) -> Tensor:
        return torch.nn.functional.pad(values.detach(), (0, 3), value=True if values.dtype == torch.bool else 7.0)

    weigh = AGGREGATIONS[aggregation]
    wide = TokenInputs(*(padded(values) for values in inputs))
    wide = wide._replace(mask=torch.nn.functional.pad(inputs.mask, (0, 3)))
    wide = wide._replace(weights=weigh(wide.mask).double())
    loss, slope = gradient(logp, inputs._replace(weights=weigh(inputs.mask).double()), EVERYTHING)
    wide_loss, wide_slope = gradient(padded(logp), wide, EVERYTHING)
    assert wide_loss == near(loss, 1e-12)
    assert torch.allclose(wide_slope[:, : slope.shape[1]], slope)


def test_shuffling_the_rows_changes_nothing_but_their_order():
    logp, inputs = toy()
    order = torch.tensor([2, 0, 1])
    loss, slope = gradient(logp, inputs, EVERYTHING)
    shuffled_loss, shuffled = gradient(logp[order], TokenInputs(*(values[order] for values in inputs)), EVERYTHING)
    assert shuffled_loss == near(loss, 1e-12)
    assert torch.allclose(shuffled, slope[order])


def test_equal_sampler_and_trainer_give_the_uncorrected_loss_to_the_bit():
    logp, inputs = toy()
    inputs = inputs._replace(rollout_logp=inputs.old_logp)
    corrected, plain = (gradient(logp, inputs, s) for s in (PLAIN.model_copy(update={"correction": TokenTis()}), PLAIN))
    assert corrected[0] == plain[0]
    assert torch.equal(corrected[1], plain[1])


def test_the_correction_multiplies_the_token_loss_outside_the_clip():
    logp, inputs = toy()
    corrected = PLAIN.model_copy(update={"correction": TokenTis(cap=1.5)})
    weights = tis_token(inputs.old_logp, inputs.rollout_logp, TokenTis(cap=1.5))
    assert torch.allclose(gradient(logp, inputs, corrected)[1], gradient(logp, inputs, PLAIN)[1] * weights)


def test_the_kl_term_is_added_after_the_advantage_and_scales_with_beta():
    logp, inputs = toy()
    plain = gradient(logp, inputs, PLAIN)[1]
    one, two = (
        gradient(logp, inputs, PLAIN.model_copy(update={"kl": KlLoss(kind="k2", beta=beta)}))[1] - plain
        for beta in (0.1, 0.2)
    )
    expected = 0.1 * inputs.weights * (logp.detach() - inputs.ref_logp) * inputs.mask
    assert torch.allclose(one, expected)
    assert torch.allclose(two, 2 * one)


def test_a_kl_term_without_a_reference_is_an_error():
    logp, inputs = toy()
    with pytest.raises(ValueError, match="ref_logp"):
        objective(logp, inputs._replace(ref_logp=None), EVERYTHING)


def test_every_choice_of_the_settings_is_registered():
    settings = ObjectiveSettings(kl=KlLoss())
    assert settings.advantage.kind in ADVANTAGES
    assert settings.ratio.kind in RATIOS
    assert settings.correction.kind in CORRECTIONS
    assert {"k2", "k3_straight_through"} == KLS.keys()
    assert {"token_mean", "sequence_mean"} == AGGREGATIONS.keys()
