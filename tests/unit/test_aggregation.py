"""The weight of every token in the loss, worked by hand, and what every aggregation must have."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from toys import kinds, lengths, near

from components.config.objective import Aggregation, FixedAggregation, MeanAggregation
from components.objectives.aggregation import AGGREGATIONS

SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


def weigh(name: str, mask: Tensor, groups: list[int] | None = None, tokens: int = 200) -> Tensor:
    """Weights; every row is a group of its own unless ``groups`` is given."""
    settings = FixedAggregation(kind="fixed", tokens=tokens) if name == "fixed" else MeanAggregation(kind=name)
    return AGGREGATIONS[name](mask, torch.arange(len(mask)) if groups is None else torch.tensor(groups), settings)


def test_every_choice_of_the_settings_is_registered_and_nothing_else():
    assert kinds(Aggregation) == AGGREGATIONS.keys()


@pytest.mark.parametrize(
    ("name", "loss"),
    [("token_mean", 15 / 110), ("sequence_mean", 0.300), ("fixed", 0.0375), ("prompt_mean", 0.300)],
)
def test_worked_loss_of_a_short_and_a_long_answer(name, loss):
    token_losses = torch.tensor([[0.5], [0.1]]).expand(2, 100)
    assert (token_losses * weigh(name, lengths(10, 100))).sum().item() == near(loss, 1e-6)


@pytest.mark.parametrize(
    ("name", "short", "long"),
    [("token_mean", 0.00909, 0.00909), ("sequence_mean", 0.05, 0.005), ("fixed", 1 / 400, 1 / 400)],
)
def test_worked_weights_of_a_token(name, short, long):
    assert weigh(name, lengths(10, 100))[:, 0].tolist() == near([short, long], 1e-6)


def test_prompt_mean_is_the_token_mean_of_each_prompt_and_then_over_prompts():
    weights = weigh("prompt_mean", lengths(10, 100, 5), [7, 7, 3])
    assert weights[:, 0].tolist() == near([1 / 220, 1 / 220, 1 / 10], 1e-7)
    one_prompt = weigh("prompt_mean", lengths(10, 100), [4, 4])
    assert torch.allclose(one_prompt, weigh("token_mean", lengths(10, 100)))


@pytest.mark.parametrize("name", ["token_mean", "sequence_mean", "prompt_mean"])
@given(SIZES)
def test_the_weights_of_a_mean_add_up_to_one(name, sizes):
    groups = [i // 2 for i in range(len(sizes))]
    assert weigh(name, lengths(*sizes), groups).sum().item() == near(1, 1e-5)
