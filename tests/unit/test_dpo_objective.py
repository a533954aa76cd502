"""The DPO loss, against numbers worked by hand and invariants."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from components.config.dpo import DpoSettings
from components.objectives.dpo import DpoTerms, Side, dpo

MARGINS = st.floats(-20, 20, width=32)
SETTINGS = DpoSettings(beta=0.1)
EVERY_KIND = [
    SETTINGS,
    DpoSettings(beta=0.3, label_smoothing=0.2),
    DpoSettings(beta=2.0, length_normalised=True),
]


def near(expected: object, tolerance: float = 1e-5) -> object:
    return pytest.approx(expected, abs=tolerance)


def one_pair(chosen: float, rejected: float, settings: DpoSettings = SETTINGS) -> tuple[float, float]:
    """Loss of a pair of one token each, log-ratios given, and its derivative with respect to the chosen's."""
    moved = torch.tensor([[chosen], [rejected]], requires_grad=True)
    mask, zero = torch.ones(1, 1, dtype=torch.bool), torch.zeros(1, 1)
    loss = dpo(Side(moved[:1], zero, mask), Side(moved[1:], zero, mask), torch.ones(1), settings).loss
    loss.backward()
    return loss.item(), moved.grad[0].item()


def ratios(*rows: list[float], offset: float = -1.0) -> Side:
    """Completions of different lengths, with these log-ratios token by token."""
    width = max(map(len, rows))
    values = torch.tensor([[*row, *[0.0] * (width - len(row))] for row in rows])
    mask = torch.tensor([[True] * len(row) + [False] * (width - len(row)) for row in rows])
    return Side(values + offset, torch.full(values.shape, offset), mask)


# Worked numbers


@pytest.mark.parametrize(
    ("settings", "h", "loss"),
    [
        (SETTINGS, 0.0, math.log(2)),
        (SETTINGS, 3.0, 0.554355),
        (SETTINGS, -3.0, 0.854355),
        (DpoSettings(beta=0.1, label_smoothing=0.1), 3.0, 0.9 * 0.554355 + 0.1 * 0.854355),
        (DpoSettings(beta=0.1, label_smoothing=0.1), 0.0, 0.693147),
        (DpoSettings(beta=1.0), 2.0, 0.126928),
    ],
)
def test_worked_losses(settings, h, loss):
    assert one_pair(h, 0.0, settings)[0] == near(loss, 2e-6)
    assert one_pair(h / 2, -h / 2, settings)[0] == near(loss, 2e-6)


@pytest.mark.parametrize(("h", "weight"), [(3.0, 0.042556), (0.0, 0.05), (-3.0, 0.057444)])
def test_worked_weight_of_the_gradient_is_beta_times_how_wrong_the_pair_is(h, weight):
    assert one_pair(h, 0.0)[1] == near(-weight, 1e-6)


@given(MARGINS)
def test_swapping_a_pair_turns_its_margin_round(h):
    swapped = one_pair(-h, 0.0)[0]
    assert one_pair(0.0, h)[0] == near(swapped, 1e-6)
    assert swapped - one_pair(h, 0.0)[0] == near(0.1 * h, 1e-4)  # -log sigma(-x) + log sigma(x) = x


@pytest.mark.parametrize("smoothing", [0.05, 0.2, 0.4])
def test_label_smoothing_is_content_with_a_finite_margin(smoothing):
    settings = DpoSettings(beta=0.5, label_smoothing=smoothing)
    best = math.log((1 - smoothing) / smoothing) / 0.5
    assert one_pair(best, 0.0, settings)[1] == near(0.0, 1e-6)
    assert one_pair(best + 1, 0.0, settings)[1] > 0 > one_pair(best - 1, 0.0, settings)[1]


# Sums over tokens


def test_the_implicit_reward_is_a_sum_over_tokens_and_not_a_mean():
    terms = dpo(ratios([1.0, 1.0, 1.0]), ratios([0.0]), torch.ones(1), SETTINGS)
    assert terms.margins.tolist() == near([0.3])
    assert terms.loss.item() == near(0.554355, 2e-6)


def test_length_normalised_it_is_a_mean():
    settings = DpoSettings(beta=0.1, length_normalised=True)
    terms = dpo(ratios([3.0, 3.0, 3.0], [1.0, 2.0]), ratios([0.0], [0.5, 0.5, 0.5]), torch.full((2,), 0.5), settings)
    assert terms.margins.tolist() == near([0.3, 0.1])
    assert terms.losses[0].item() == near(0.554355, 2e-6)


@pytest.mark.parametrize(("normalised", "grows"), [(False, True), (True, False)])
def test_only_the_sum_pays_for_length(normalised, grows):
    settings = DpoSettings(length_normalised=normalised)
    short, long = (dpo(ratios([0.2] * n), ratios([0.1]), torch.ones(1), settings).margins.item() for n in (2, 20))
    assert (long > short + 1e-3) == grows


def test_both_absolute_log_probabilities_are_given_so_that_displacement_can_be_seen():
    terms = dpo(ratios([-1.0, -1.0]), ratios([-4.0]), torch.ones(1), SETTINGS)
    assert terms.margins.item() > 0
    assert (terms.chosen.logp.item(), terms.chosen.change.item()) == (near(-4.0), near(-2.0))
    assert (terms.rejected.logp.item(), terms.rejected.change.item()) == (near(-5.0), near(-4.0))
    assert (terms.chosen.reward.item(), terms.rejected.reward.item()) == (near(-0.2), near(-0.4))


@pytest.mark.parametrize("settings", EVERY_KIND)
def test_equal_completions_have_no_gradient(settings):
    logits = torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    side = Side(torch.log_softmax(logits, -1)[..., 1], torch.full((1, 3), -2.0), torch.ones(1, 3, dtype=torch.bool))
    terms = dpo(side, side, torch.ones(1), settings)
    terms.loss.backward()
    assert terms.loss.item() == near(math.log(2))
    assert torch.equal(logits.grad, torch.zeros_like(logits))


# Invariants


def toy(pairs: int = 8, width: int = 4) -> tuple[Side, Side]:
    """Pairs of ragged completions in double precision."""
    generator = torch.Generator().manual_seed(0)

    def side(shift: int) -> Side:
        lengths = torch.tensor([1 + (i + shift) % width for i in range(pairs)])
        noise = torch.randn(2, pairs, width, generator=generator, dtype=torch.float64)
        return Side(noise[0] - 1, noise[1] - 1, torch.arange(width)[None, :] < lengths[:, None])

    return side(0), side(2)


def outcome(chosen: Side, rejected: Side, weights: Tensor, settings: DpoSettings) -> tuple[float, Tensor, DpoTerms]:
    """Loss, gradient with respect to both log-probabilities side by side, and the terms."""
    logps = [side.logp.detach().clone().requires_grad_() for side in (chosen, rejected)]
    terms = dpo(chosen._replace(logp=logps[0]), rejected._replace(logp=logps[1]), weights, settings)
    terms.loss.backward()
    return terms.loss.item(), torch.cat([logp.grad for logp in logps], dim=1), terms


def rows(side: Side, part: slice | Tensor) -> Side:
    return Side(*(values[part] for values in side))


@pytest.mark.parametrize("settings", EVERY_KIND)
@pytest.mark.parametrize("sizes", [[1] * 8, [4, 4], [5, 3], [2, 5, 1]])
def test_any_split_into_micro_batches_gives_the_loss_and_the_gradient_of_the_whole(settings, sizes):
    chosen, rejected = toy()
    weights = torch.full((8,), 1 / 8, dtype=torch.float64)
    loss, gradient, _ = outcome(chosen, rejected, weights, settings)
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    parts = [slice(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    found = [outcome(rows(chosen, p), rows(rejected, p), weights[p], settings) for p in parts]
    assert sum(part[0] for part in found) == near(loss, 1e-12)
    assert torch.allclose(torch.cat([part[1] for part in found]), gradient, atol=1e-12)


@pytest.mark.parametrize("settings", EVERY_KIND)
@pytest.mark.parametrize("junk", [float("nan"), float("inf"), float("-inf"), 1e30])
def test_what_stands_in_masked_places_changes_neither_loss_nor_gradient(settings, junk):
    chosen, rejected = toy()
    weights = torch.full((8,), 1 / 8, dtype=torch.float64)

    def spoiled(side: Side) -> Side:
        return Side(*(torch.where(side.mask, values, junk) for values in side[:2]), side.mask)

    loss, gradient, _ = outcome(chosen, rejected, weights, settings)
    loss_again, gradient_again, _ = outcome(spoiled(chosen), spoiled(rejected), weights, settings)
    assert loss_again == loss
    assert torch.equal(gradient_again, gradient)
    assert (gradient_again[~torch.cat([chosen.mask, rejected.mask], dim=1)] == 0).all()


@pytest.mark.parametrize("settings", EVERY_KIND)
def test_the_gradient_is_the_one_that_finite_differences_find(settings):
    chosen, rejected = toy(pairs=2, width=3)
    logits = torch.randn(2, 2, 3, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    def loss(logits: Tensor) -> Tensor:
        logp = torch.log_softmax(logits, -1)[..., 0]
        return dpo(chosen._replace(logp=logp[0]), rejected._replace(logp=logp[1]), torch.ones(2), settings).loss

    assert torch.autograd.gradcheck(loss, logits.requires_grad_(), eps=1e-7, atol=1e-6)


@pytest.mark.parametrize("gap", [-1e4, 1e4])
def test_an_absurd_margin_stays_finite(gap):
    loss, slope = one_pair(gap, 0.0, DpoSettings(beta=1.0))
    assert math.isfinite(loss)
    assert slope == near(-1.0 if gap < 0 else 0.0)
