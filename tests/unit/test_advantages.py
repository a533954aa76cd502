"""Advantage estimators, against numbers worked by hand and invariants that all or most of them must have."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from factories import group, score
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from toys import kinds, near

from components.config.advantages import (
    Advantage,
    BatchStdAdvantage,
    GdpoAdvantage,
    GrpoAdvantage,
    HrasAdvantage,
    LeaveOneOutAdvantage,
    MaxRlAdvantage,
)
from components.errors import InputError
from components.objectives.advantages import ADVANTAGES, Rewards, cap, rewards_of
from components.objectives.advantages.gdpo import decoupled
from components.objectives.advantages.hras import beta
from components.types import Completion, Group, Score

GRPO = GrpoAdvantage()
DR_GRPO = GrpoAdvantage(std="none")
MAXRL = MaxRlAdvantage(kind="maxrl")
GDPO = GdpoAdvantage(kind="gdpo")
HRAS = HrasAdvantage(kind="hras", warmup=0, decay=0, beta_end=0.5)
ALL = {
    "grpo": GRPO,
    "unbiased grpo": GrpoAdvantage(std="unbiased"),
    "dr_grpo": DR_GRPO,
    "lite_ppo": BatchStdAdvantage(kind="batch_std"),
    "scalerl": BatchStdAdvantage(kind="batch_std", of="centred", std="unbiased"),
    "rloo": LeaveOneOutAdvantage(kind="leave_one_out"),
    "rloo with std": LeaveOneOutAdvantage(kind="leave_one_out", std="unbiased"),
    "maxrl": MAXRL,
    "gdpo": GDPO,
    "hras": HRAS,
}
LONELY = [settings for settings in ALL.values() if settings.kind not in ("batch_std", "gdpo")]
"""Estimators in which a group does not see the others."""
every = pytest.mark.parametrize("settings", ALL.values(), ids=list(ALL))
few = profile(max_examples=30)
ANY = st.sampled_from(list(ALL)).map(ALL.get)


def rewards(*groups, step=0, **parts):
    """Rewards of groups of equal size; None is unscorable. Without parts, accuracy is the whole reward.

    A part ``consistency`` of 0 is added where there is none, which is in no other estimator's way.
    """
    scorable = torch.tensor([[r is not None for r in row] for row in groups], dtype=torch.bool)
    accuracy = torch.tensor([[r or 0.0 for r in row] for row in groups])
    named = {"consistency": torch.zeros(accuracy.shape), **{k: torch.tensor(v) for k, v in parts.items()}}
    named = {"accuracy": accuracy, **named}
    return Rewards(torch.stack(list(named.values())).sum(0), accuracy, named, scorable, step)


def found(settings, *groups, **parts):
    return ADVANTAGES[settings.kind](rewards(*groups, **parts), settings)


def one(settings, row, **parts):
    """Advantages of a single group."""
    return found(settings, row, **{name: [values] for name, values in parts.items()})[0].tolist()


def fresh(settings, **changes):
    return TypeAdapter(Advantage).validate_python({**settings.model_dump(), **changes})


def test_every_choice_of_the_settings_is_registered_and_nothing_else():
    assert kinds(Advantage) - {"gae", "python"} == ADVANTAGES.keys() == {settings.kind for settings in ALL.values()}


# What all of them have in common

REWARD = st.integers(0, 8).map(lambda n: n / 4)
ROW = st.lists(REWARD, min_size=2, max_size=8)
BATCH = st.integers(2, 5).flatmap(
    lambda size: st.lists(st.lists(st.none() | REWARD, min_size=size, max_size=size), min_size=1, max_size=3)
)
WILD = st.sampled_from([None, 0.0, 1.0, 1e-30, 1e30, 3e38]) | st.floats(0, 2.0**100, width=32)


@given(settings=ANY, batch=BATCH)
def test_advantages_of_a_group_add_up_to_zero(settings, batch):
    assert found(settings, *batch).sum(1).tolist() == near([0.0] * len(batch))


@given(settings=ANY, batch=st.lists(st.lists(WILD, min_size=3, max_size=3), min_size=1, max_size=4))
def test_no_rewards_however_odd_give_nan_or_infinity(settings, batch):
    assert found(settings, *batch).isfinite().all()


@given(settings=ANY, reward=st.floats(0, 10, width=32), size=st.integers(1, 64))
def test_a_group_of_equal_rewards_gets_exactly_zero(settings, reward, size):
    assert one(settings, [reward] * size) == [0.0] * size
    assert found(settings, [reward] * size, [1.0] + [0.0] * (size - 1))[0].tolist() == [0.0] * size


@every
@pytest.mark.parametrize("junk", [0.0, 100.0, math.nan, math.inf])
def test_unscorable_completions_count_in_no_statistic_and_get_zero(settings, junk):
    batch = rewards([1.0, None, 0.0, 0.5], [0.0, 0.0, 1.0, None])
    spoiled = batch._replace(
        total=torch.where(batch.scorable, batch.total, junk),
        parts={name: torch.where(batch.scorable, values, junk) for name, values in batch.parts.items()},
    )
    expected = ADVANTAGES[settings.kind](batch, settings)
    assert torch.equal(ADVANTAGES[settings.kind](spoiled, settings), expected)
    assert expected[~batch.scorable].tolist() == [0.0, 0.0]
    assert one(settings, [1.0, None, 0.0, 0.5]) == near(
        [*one(settings, [1.0, 0.0, 0.5])[:1], 0.0, *one(settings, [1.0, 0.0, 0.5])[1:]], 1e-6
    )


@every
@pytest.mark.parametrize("row", [[1.0, None, None], [None, None, 0.0], [None, None, None]])
def test_a_group_with_fewer_than_two_scorable_completions_teaches_nothing(settings, row):
    assert one(settings, row) == [0.0] * 3
    assert found(settings, row, [1.0, 0.0, 0.0])[0].tolist() == [0.0] * 3


@every
@pytest.mark.parametrize("row", [[1.0, None, None], [None, None, None]])
def test_nor_does_it_change_what_others_teach(settings, row):
    assert found(settings, row, [1.0, 0.0, 0.0])[1].tolist() == one(settings, [1.0, 0.0, 0.0])


@every
@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (3, 0), (2, 1)])
def test_groups_of_one_empty_groups_and_no_groups_give_zeros_of_their_shape(settings, shape):
    nothing, none = torch.zeros(shape), torch.ones(shape, dtype=torch.bool)
    batch = Rewards(nothing, nothing, {"accuracy": nothing, "consistency": nothing}, none)
    assert torch.equal(ADVANTAGES[settings.kind](batch, settings), torch.zeros(shape))


@given(
    settings=ANY,
    case=BATCH.flatmap(
        lambda b: st.tuples(st.just(b), st.permutations(range(len(b[0]))), st.permutations(range(len(b))))
    ),
)
def test_shuffling_a_group_or_the_batch_shuffles_the_advantages(settings, case):
    batch, members, order = case
    shuffled = found(settings, *([batch[n][g] for g in members] for n in order))
    expected = found(settings, *batch)[list(order)][:, list(members)]
    assert torch.allclose(shuffled, expected, atol=1e-6)


@given(settings=ANY, row=ROW)
def test_a_higher_reward_never_has_a_lower_advantage(settings, row):
    ranked = one(settings, sorted(row))
    assert all(a <= b + 1e-6 for a, b in pairwise(ranked))


@given(settings=st.sampled_from(LONELY), batch=BATCH)
def test_without_a_batch_statistic_groups_do_not_see_each_other(settings, batch):
    assert found(settings, *batch).tolist() == [one(settings, row) for row in batch]


# GRPO and Dr. GRPO


@pytest.mark.parametrize(
    ("std", "expected"),
    [
        ("population", [1.7321, -0.5774, -0.5774, -0.5774]),
        ("unbiased", [1.5, -0.5, -0.5, -0.5]),
        ("none", [0.75, -0.25, -0.25, -0.25]),
    ],
)
def test_worked_advantages_of_one_right_in_four(std, expected):
    assert one(GrpoAdvantage(std=std), [1.0, 0, 0, 0]) == near(expected)


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
    assert one(GrpoAdvantage(std=std, eps=eps), [1, 1, 1, 0.999])[3] == pytest.approx(loser, rel=1e-3)


@pytest.mark.parametrize(
    ("size", "population", "unbiased"),
    [(8, 2.6458, 2.4749), (16, 3.873, 3.75), (64, 7.937, 7.875), (128, 11.269, 11.225)],
)
def test_the_advantage_of_the_only_winner_grows_with_the_group(size, population, unbiased):
    row = [1.0] + [0.0] * (size - 1)
    assert one(GRPO, row)[0] == pytest.approx(population, rel=1e-4)
    assert one(GrpoAdvantage(std="unbiased"), row)[0] == pytest.approx(unbiased, rel=1e-4)
    assert one(DR_GRPO, row)[0] == pytest.approx(1 - 1 / size)


@few
@given(ROW.filter(lambda row: len(set(row)) > 1))
def test_squares_add_up_to_the_group_size_or_one_less(row):
    for std, expected in (("population", len(row)), ("unbiased", len(row) - 1)):
        assert sum(a * a for a in one(GrpoAdvantage(std=std), row)) == near(expected, 1e-3)


@few
@given(ROW, st.integers(1, 20), st.integers(0, 5))
def test_scale_and_offset_of_the_reward_do_not_matter_when_the_std_divides(row, scale, offset):
    assert one(GRPO, [scale * r + offset for r in row]) == near(one(GRPO, row), 1e-3)


# Batch deviation

TWO = ([1.0, 0, 0, 0], [1.0, 1.0, 0, 0])


@pytest.mark.parametrize(
    ("of", "std", "winner"),
    [
        ("rewards", "population", 0.75 / math.sqrt(0.375 * 0.625)),
        ("rewards", "unbiased", 0.75 / math.sqrt(0.375 * 0.625 * 8 / 7)),
        ("centred", "population", 0.75 / math.sqrt(1.75 / 8)),
        ("centred", "unbiased", 0.75 / math.sqrt(1.75 / 7)),
    ],
)
def test_worked_advantages_over_the_deviation_of_the_batch(of, std, winner):
    settings = BatchStdAdvantage(kind="batch_std", of=of, std=std)
    first, second = found(settings, *TWO).tolist()
    assert first == near([winner, *[-winner / 3] * 3], 1e-5)
    assert second == near([2 / 3 * winner, 2 / 3 * winner, -2 / 3 * winner, -2 / 3 * winner], 1e-5)


def test_in_a_batch_of_one_group_the_batch_deviation_is_that_of_the_group():
    for of in ("rewards", "centred"):
        settings = BatchStdAdvantage(kind="batch_std", of=of)
        assert one(settings, [1.0, 0, 0, 0]) == near([1.7321, -0.5774, -0.5774, -0.5774])


@pytest.mark.parametrize("of", ["rewards", "centred"])
def test_a_group_that_hardly_varies_is_not_blown_up_by_a_batch_deviation(of):
    batch = found(BatchStdAdvantage(kind="batch_std", of=of), [1.0, 1.0, 1.0, 0.999], [1.0, 0.0, 1.0, 0.0])
    assert batch[0].abs().max() < 0.003
    assert batch[1].abs().min() > 0.9


@few
@given(BATCH)
def test_the_deviation_of_centred_rewards_leaves_a_batch_of_variance_one(batch):
    advantages = found(BatchStdAdvantage(kind="batch_std", of="centred"), *batch)
    counted = [r for row in batch if sum(r is not None for r in row) > 1 for r in row if r is not None]
    expected = len(counted) if advantages.any() else 0
    assert advantages.square().sum().item() == near(expected, 1e-3)


@few
@given(st.integers(1, 9), st.integers(0, 9))
def test_an_offset_of_one_group_changes_only_the_deviation_of_the_rewards(scale, offset):
    moved = (TWO[0], [r + offset for r in TWO[1]])
    centred, raw = (BatchStdAdvantage(kind="batch_std", of=of) for of in ("centred", "rewards"))
    assert found(centred, *moved).tolist() == [near(row, 1e-5) for row in found(centred, *TWO).tolist()]
    assert (found(raw, *moved)[0, 0] < found(raw, *TWO)[0, 0]) == (offset > 0)
    scaled = [[scale * r for r in row] for row in TWO]
    assert found(raw, *scaled).tolist() == [near(row, 1e-4) for row in found(raw, *TWO).tolist()]


# Leave one out

RLOO = LeaveOneOutAdvantage(kind="leave_one_out")


def test_worked_leave_one_out_advantages():
    assert one(RLOO, [1.0, 0, 0, 0]) == near([1, -1 / 3, -1 / 3, -1 / 3], 1e-6)


@few
@given(ROW)
def test_it_is_the_reward_minus_the_mean_of_the_others_and_dr_grpo_is_that_shrunk(row):
    others = [r - (sum(row) - r) / (len(row) - 1) for r in row]
    assert one(RLOO, row) == near(others, 1e-5)
    assert one(DR_GRPO, row) == near([(len(row) - 1) / len(row) * a for a in others], 1e-5)


@pytest.mark.parametrize(
    ("std", "loser"), [("none", -0.95), ("population", -8 / 7 * 2.64575), ("unbiased", -8 / 7 * 2.47487)]
)
def test_a_lone_loser_among_equals_is_bounded_although_the_deviation_of_its_others_is_zero(std, loser):
    advantages = one(LeaveOneOutAdvantage(kind="leave_one_out", std=std), [0.0] + [0.95] * 7)
    assert advantages == near([loser, *[-loser / 7] * 7], 1e-4)


# MaxRL


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([1.0, 0, 0, 0], [3, -1, -1, -1]),
        ([1.0, 1, 0, 0], [1, 1, -1, -1]),
        ([0.0] * 4, [0.0] * 4),
        ([0.5, 0.0], [1, -1]),
    ],
)
def test_worked_maxrl_advantages(row, expected):
    assert one(MAXRL, row) == near(expected, 1e-6)


@pytest.mark.parametrize("size", [4, 16, 128])
def test_the_only_winner_of_maxrl_gets_one_less_than_the_group_size_more_than_grpo_gives_it(size):
    row = [1.0] + [0.0] * (size - 1)
    assert one(MAXRL, row)[0] == near(size - 1, 1e-4)
    assert one(MAXRL, row)[0] > one(GRPO, row)[0]


@few
@given(ROW, st.integers(1, 20))
def test_the_scale_of_the_reward_does_not_matter_to_maxrl(row, scale):
    assert one(MAXRL, [scale * r for r in row]) == near(one(MAXRL, row), 1e-4)


def test_maxrl_refuses_negative_rewards_and_says_which_part_is_negative():
    with pytest.raises(InputError, match=r"0 or more, found -0\.5") as caught:
        one(MAXRL, [0.0, 1.0], overlong=[-0.5, 0.0], format=[0.0, 1.0])
    assert "(overlong)" in str(caught.value)
    assert "objective.advantage" in str(caught.value)


# GDPO


def several(first, second):
    """One group with two parts besides an accuracy that is the same for all."""
    batch = rewards([0.0] * len(first), r1=[first], r2=[second])
    return batch._replace(parts={name: batch.parts[name] for name in ("r1", "r2")})


def test_worked_sum_of_parts_normalised_apart_and_together():
    batch = several([1.0, 1, 0, 0], [1.0, 0, 1, 0])
    assert decoupled(batch, GDPO)[0].tolist() == near([2, 0, 0, -2])
    assert ADVANTAGES["grpo"](batch, GRPO)[0].tolist() == near([1.414, 0, 0, -1.414], 1e-3)


@few
@given(BATCH)
def test_after_the_batch_normalisation_the_deviation_is_one(batch):
    advantages = found(GDPO, *batch)
    counted = [r for row in batch if sum(r is not None for r in row) > 1 for r in row if r is not None]
    expected = len(counted) if advantages.any() else 0
    assert advantages.square().sum().item() == near(expected, 1e-3)


def test_with_a_single_part_it_is_grpo_up_to_the_batch_normalisation():
    varied, level = [1.0, 0, 0, 0], [1.0] * 4
    assert found(GDPO, varied, [1.0, 1, 0, 0]).tolist() == [near(one(GRPO, varied)), near([1, 1, -1, -1])]
    assert found(GDPO, varied, level)[0].tolist() == near([math.sqrt(2) * a for a in one(GRPO, varied)])


def test_the_scale_of_a_part_cancels_and_its_weight_does_not():
    small, large = several([1.0, 1, 0, 0], [1.0, 0, 1, 0]), several([1.0, 1, 0, 0], [50.0, 0, 50, 0])
    assert decoupled(large, GDPO).tolist() == [near(decoupled(small, GDPO)[0].tolist(), 1e-5)]
    weighed = fresh(GDPO, weights={"r2": 0.5})
    assert decoupled(small, weighed)[0].tolist() == near([1.5, 0.5, -0.5, -1.5])
    assert decoupled(small, fresh(GDPO, weights={"r2": 0.0}))[0].tolist() == near([1, 1, -1, -1])


def test_two_combinations_with_the_same_sum_keep_their_difference_when_a_part_is_rare():
    batch = several([1.0, 0, 0, 0], [0.0, 1, 1, 0])
    assert ADVANTAGES["grpo"](batch, GRPO)[0, :2].tolist() == near([0.5774, 0.5774])
    rare, common = ADVANTAGES["gdpo"](batch, GDPO)[0, :2].tolist()
    assert rare > common + 0.1


def test_a_weight_for_a_part_that_is_not_there_is_an_error_that_names_those_that_are():
    with pytest.raises(InputError, match="named consistancy, lenght") as caught:
        one(fresh(GDPO, weights={"lenght": 1.0, "consistancy": 2.0, "accuracy": 1.0}), [1.0, 0.0])
    assert "accuracy, consistency" in str(caught.value)


def test_nor_is_it_one_where_no_answer_could_be_scored_and_there_are_no_parts():
    weighed = fresh(GDPO, weights={"accuracy": 2.0})
    assert not ADVANTAGES["gdpo"](rewards_of([group([None, None])]), weighed).any()


def test_weights_below_zero_are_refused():
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        fresh(GDPO, weights={"accuracy": -1.0})


# HRAS

TASK, CONS = [1.0, 1, 0, 0], [0.9, 0.1, 0.8, 0.2]


@pytest.mark.parametrize("scale", [1.0, 5.0, 0.5])
def test_worked_hras_advantages_whatever_the_scale_of_the_consistency(scale):
    assert one(HRAS, TASK, consistency=[scale * c for c in CONS]) == near([1.566, 0.434, -0.576, -1.424], 1e-3)


@pytest.mark.parametrize(
    ("scale", "expected"), [(1, [1.469, 0.163, -0.327, -1.306]), (5, [1.361, -0.816, 0.544, -1.089])]
)
def test_normalising_the_sum_instead_ranks_wrong_but_consistent_above_right_at_some_scales(scale, expected):
    assert one(GRPO, TASK, consistency=[scale * c for c in CONS]) == near(expected, 1e-3)


def test_without_beta_it_is_grpo_on_the_task_and_the_task_is_every_other_part():
    settings = fresh(HRAS, beta=0.0, beta_end=0.0)
    assert one(settings, TASK, consistency=CONS) == near([1, 1, -1, -1])
    assert one(settings, TASK, consistency=CONS, format=[1.0, 0, 1, 0]) == near(one(GRPO, [2.0, 1, 1, 0]))


def test_alpha_weighs_the_task():
    assert one(fresh(HRAS, alpha=2.0), TASK, consistency=[0.5] * 4) == near([2, 2, -2, -2])


def test_a_group_of_right_answers_learns_consistency_alone():
    assert one(HRAS, [1.0] * 4, consistency=CONS) == near([0.5 * a for a in (1.131, -1.131, 0.849, -0.849)], 1e-3)


@pytest.mark.parametrize(("gate", "expected"), [("correct_only", 0.0), ("none", 0.5657)])
def test_a_group_without_a_right_answer_learns_to_be_consistently_wrong_only_without_the_gate(gate, expected):
    assert one(fresh(HRAS, cons_gate=gate), [0.0] * 4, consistency=CONS)[0] == near(expected)
    assert one(fresh(HRAS, cons_gate=gate), [0.5] * 4, consistency=CONS)[0] == near(expected)


def test_a_right_answer_that_could_not_be_scored_opens_no_gate():
    batch = rewards([1.0, 0, 0, 0], consistency=[CONS])
    assert ADVANTAGES["hras"](batch, HRAS)[0, 3] < 0
    hidden = batch._replace(scorable=torch.tensor([[False, True, True, True]]))
    assert ADVANTAGES["hras"](hidden, HRAS).tolist() == [[0.0] * 4]


@pytest.mark.parametrize(("floor", "changes"), [(0.05, False), (0.001, True), (0.0, True)])
def test_consistency_that_hardly_varies_is_noise_below_the_floor(floor, changes):
    advantages = one(fresh(HRAS, std_floor=floor), TASK, consistency=[0.51, 0.49, 0.5, 0.5])
    assert (advantages != one(GRPO, TASK)) == changes


@pytest.mark.parametrize(
    ("step", "expected"), [(0, 0.0), (25, 0.25), (50, 0.5), (150, 0.3), (249, 0.102), (250, 0.1), (10_000, 0.1)]
)
def test_the_weight_of_the_consistency_warms_up_and_decays(step, expected):
    settings = HrasAdvantage(kind="hras")
    assert beta(step, settings) == near(expected, 1e-9)
    assert ADVANTAGES["hras"](rewards([1.0] * 4, consistency=[CONS], step=step), settings)[0, 0].item() == near(
        expected * 1.1314, 1e-4
    )


def test_without_warm_up_and_decay_the_last_weight_holds_at_once():
    assert beta(0, HrasAdvantage(kind="hras", warmup=0)) == 0.5
    assert beta(0, HrasAdvantage(kind="hras", warmup=0, decay=0)) == near(0.1, 1e-12)


def test_hras_without_a_consistency_part_is_an_error_that_says_what_there_is():
    batch = rewards([1.0, 0.0], overlong=[[0.0, 0.0]])
    without = batch._replace(parts={name: batch.parts[name] for name in ("overlong", "accuracy")})
    with pytest.raises(InputError, match="named consistency, found accuracy, overlong"):
        ADVANTAGES["hras"](without, HRAS)


# The cap


def test_worked_cap_of_the_only_winner_of_128():
    advantages = found(GRPO, [1.0] + [0.0] * 127)
    capped = cap(advantages, 4.0)
    assert capped.advantages[0, 0] == 4.0
    assert torch.equal(capped.advantages[0, 1:], advantages[0, 1:])
    assert capped.share == 1 / 128


def test_the_share_is_of_advantages_that_teach_something():
    assert cap(torch.tensor([[5.0, -5.0, 1.0, -1.0], [0.0, 0.0, 0.0, 0.0]]), 2.0).share == 0.5
    assert cap(torch.zeros(2, 3), 2.0).share == 0.0
    assert cap(torch.zeros(0, 3), 2.0).share == 0.0


@few
@given(st.lists(st.floats(-20, 20, width=32), min_size=1), st.floats(0.1, 10))
def test_a_capped_advantage_keeps_its_sign_and_nothing_within_the_cap_changes(values, limit):
    before = torch.tensor(values)
    after = cap(before, limit).advantages
    assert (after.abs() <= limit * (1 + 1e-6)).all()
    assert torch.equal(after.sign(), before.sign())
    assert torch.equal(after[before.abs() <= limit], before[before.abs() <= limit])


# From scored groups to a rectangle


def test_rewards_of_groups_of_different_sizes_are_a_rectangle():
    ragged = [group([1.0, 0.0, None]), group([]), group([1.0])]
    table = rewards_of(ragged, step=7)
    assert table.total.tolist() == [[1.0, 0.0, 0.0], [0.0] * 3, [1.0, 0.0, 0.0]]
    assert table.scorable.tolist() == [[True, True, False], [False] * 3, [True, False, False]]
    assert table.step == 7
    assert ADVANTAGES["grpo"](table, GRPO).tolist() == [[near(1.0), near(-1.0), 0.0], [0.0] * 3, [0.0] * 3]


def scored(*scores):
    return Group(group([]).prompt, (1,), tuple(Completion((5,), (-1.0,), "stop", "") for _ in scores), scores)


def test_parts_are_named_weighted_and_add_up_to_the_total():
    table = rewards_of([scored(Score(0.5, {"overlong": -0.25}, weight=2.0), Score(1.0, {"format": 1.0}), score(None))])
    assert list(table.parts) == ["accuracy", "format", "overlong"]
    assert table.parts["accuracy"].tolist() == [[1.0, 1.0, 0.0]]
    assert table.parts["overlong"].tolist() == [[-0.25, 0.0, 0.0]]
    assert table.accuracy.tolist() == [[0.5, 1.0, 0.0]]
    assert torch.equal(sum(table.parts.values()), table.total)


@pytest.mark.parametrize("part", [math.nan, math.inf, -math.inf, 1e39])
def test_a_reward_that_is_not_a_finite_single_is_not_scorable(part):
    table = rewards_of([scored(score(1.0, odd=part), score(1.0, odd=1.0), score(0.0, odd=1.0))])
    assert table.scorable.tolist() == [[False, True, True]]
    assert table.parts["odd"].tolist() == [[0.0, 1.0, 1.0]]
    assert ADVANTAGES["gdpo"](table, GDPO)[0].tolist() == near([0.0, 1.0, -1.0])


def test_parts_that_cancel_beyond_single_precision_are_not_scorable_either():
    table = rewards_of([scored(score(1.0, up=1e39, down=-1e39), score(1.0))])
    assert table.scorable.tolist() == [[False, True]]


@pytest.mark.parametrize("groups", [[], [group([])], [group([None, None])]])
@every
def test_no_groups_empty_groups_and_groups_without_scores_have_no_advantages(settings, groups):
    table = rewards_of(groups)
    found = ADVANTAGES[settings.kind](table, settings)
    assert found.shape == table.total.shape
    assert not found.any()
