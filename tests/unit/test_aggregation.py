"""The weight of every token in the loss, worked by hand, and what every aggregation must have."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import pad
from toys import kinds, lengths, near

from components.config.objective import Aggregation, FixedAggregation, MeanAggregation
from components.objectives.aggregation import AGGREGATIONS

NAMES = sorted(AGGREGATIONS)
SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


def weigh(name: str, mask: Tensor, groups: list[int] | None = None, tokens: int = 200) -> Tensor:
    """Weights; every row is a group of its own unless told otherwise."""
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


def test_doubling_an_answer_halves_the_weight_of_its_tokens_under_sequence_mean_only():
    short, long = lengths(10, 10), lengths(20, 10)
    assert weigh("sequence_mean", long)[0, 0] == weigh("sequence_mean", short)[0, 0] / 2
    assert weigh("fixed", long)[0, 0] == weigh("fixed", short)[0, 0]
    assert weigh("token_mean", long)[0, 0] == weigh("token_mean", long)[1, 0]


@given(st.integers(1, 50), st.integers(1, 50))
def test_with_a_fixed_constant_no_other_answer_changes_the_weight_of_a_token(one, other):
    assert weigh("fixed", lengths(3, one))[0, 0] == weigh("fixed", lengths(3, other))[0, 0]


def test_with_token_mean_another_answer_does():
    assert weigh("token_mean", lengths(3, 7))[0, 0] != weigh("token_mean", lengths(3, 8))[0, 0]


@pytest.mark.parametrize("name", ["token_mean", "sequence_mean", "prompt_mean"])
@given(SIZES)
def test_the_weights_of_a_mean_add_up_to_one(name, sizes):
    groups = [i // 2 for i in range(len(sizes))]
    assert weigh(name, lengths(*sizes), groups).sum().item() == near(1, 1e-5)


@pytest.mark.parametrize("name", NAMES)
@given(SIZES)
def test_padding_has_no_weight(name, sizes):
    mask = lengths(*sizes)
    assert (weigh(name, mask)[~mask] == 0).all()


@pytest.mark.parametrize("name", NAMES)
@given(SIZES, st.integers(0, 5), st.integers(0, 3))
def test_padding_columns_and_empty_rows_change_no_weight(name, sizes, columns, rows):
    mask = lengths(*sizes)
    groups = [i // 2 for i in range(len(sizes))]
    padded = weigh(name, pad(mask, (0, columns, 0, rows)), groups + [99] * rows)
    assert torch.equal(padded[: len(sizes), : mask.shape[1]], weigh(name, mask, groups))


@pytest.mark.parametrize("name", NAMES)
def test_a_truncated_answer_whose_tokens_do_not_count_is_in_no_denominator(name):
    """What `objective.overlong_filter` does: the row stays, its mask is empty."""
    filtered = weigh(name, lengths(3, 0, 5), [0, 0, 1])
    assert torch.equal(filtered[[0, 2]], weigh(name, lengths(3, 5), [0, 1]))


@pytest.mark.parametrize("name", NAMES)
@given(st.permutations(range(5)))
def test_shuffling_the_rows_shuffles_their_weights(name, order):
    mask, groups = lengths(3, 0, 5, 1, 2), [4, 4, 2, 2, 0]
    shuffled = weigh(name, mask[list(order)], [groups[i] for i in order])
    assert torch.equal(shuffled, weigh(name, mask, groups)[list(order)])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(2, 3), (2, 0), (0, 3)])
def test_a_batch_without_a_token_weighs_nothing_and_is_not_nan(name, shape):
    assert torch.equal(weigh(name, torch.zeros(shape, dtype=torch.bool)), torch.zeros(shape))
