"""Where a batch is cut into passes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.learner.cuts import PASS, SEATS, cuts, group_cuts


def cut(prompts: list[int], responses: list[int], budget: int) -> list[int]:
    """Rows of each run."""
    found = cuts(np.array(prompts, dtype=np.int64), np.array(responses, dtype=np.int64), budget)
    assert [row for run in found for row in range(run.start, run.stop)] == list(range(len(prompts)))
    return [run.stop - run.start for run in found]


def tokens(prompts: list[int], responses: list[int], sizes: list[int]) -> list[int]:
    """Padded tokens of each run."""
    starts = [0, *itertools.accumulate(sizes)]
    return [(b - a) * (max(prompts[a:b]) + max(responses[a:b])) for a, b in itertools.pairwise(starts)]


@pytest.mark.parametrize(
    ("prompts", "responses", "budget", "expected"),
    [
        ([10] * 6, [30] * 6, 1000, [6]),
        ([10] * 6, [30] * 6, 80, [2, 2, 2]),
        ([10] * 6, [30] * 6, 1, [1] * 6),
        ([10] * 6, [0] * 6, 30, [3, 3]),
        ([10] * 20 + [60] * 20, [30] * 20 + [40] * 20, 10_000, [20, 20]),  # 1,200 tokens of padding for one more pass
        ([10] * 2 + [60] * 2, [30] * 2 + [40] * 2, 10_000, [4]),  # 120 are not worth it
        ([], [], 100, []),
    ],
)
def test_worked_cuts(prompts, responses, budget, expected):
    assert cut(prompts, responses, budget) == expected


ROWS = st.lists(st.tuples(st.integers(1, 200), st.integers(0, 200)), min_size=1, max_size=8)


@given(ROWS, st.integers(1, 2000))
def test_no_other_cuts_within_the_budget_cost_less(rows, budget):
    prompts, responses = [p for p, _ in rows], [r for _, r in rows]

    def cost(sizes: list[int]) -> float:
        found = tokens(prompts, responses, sizes)
        fits = all(total <= budget or size == 1 for total, size in zip(found, sizes, strict=True))
        return sum(found) + PASS * len(found) if fits else np.inf

    def partitions(count: int) -> list[list[int]]:
        return [[]] if not count else [[n, *rest] for n in range(1, count + 1) for rest in partitions(count - n)]

    assert cost(cut(prompts, responses, budget)) == min(map(cost, partitions(len(rows))))


def test_a_batch_of_mixed_lengths_has_less_padding_in_fewer_passes_than_equal_parts_of_it():
    rng = np.random.default_rng(0)
    rows = sorted(zip(rng.integers(7, 19, 256).tolist(), rng.integers(7, 40, 256).tolist(), strict=True), key=sum)
    prompts, responses = [p for p, _ in rows], [r for _, r in rows]
    budget = 2048
    sizes = cut(prompts, responses, budget)
    equal = budget // (max(prompts) + max(responses))
    parts = [equal] * (256 // equal) + [256 % equal]
    assert sum(tokens(prompts, responses, sizes)) < sum(tokens(prompts, responses, parts))
    assert len(sizes) < len(parts)


def test_passes_that_pack_keep_groups_whole_and_compute_no_more_than_their_budget():
    groups, prompts, responses = rows(([0, 1, 0, 2, 1], [10, 10, 10, 10, 10], [5, 5, 5, 5, 5]))
    assert [part.tolist() for part in group_cuts(groups, prompts, responses, 40)] == [[0, 2, 1, 4], [3]]


def test_a_group_above_the_budget_is_cut_between_its_rows():
    groups, prompts, responses = rows(([0, 0, 0, 1], [10, 10, 10, 10], [8, 8, 8, 8]))
    assert [part.tolist() for part in group_cuts(groups, prompts, responses, 26)] == [[0, 1], [2], [3]]


def test_a_row_above_the_budget_is_a_pass_of_its_own():
    groups, prompts, responses = rows(([0, 1], [10, 10], [90, 1]))
    assert [part.tolist() for part in group_cuts(groups, prompts, responses, 50)] == [[0], [1]]


def test_a_long_response_does_not_make_a_pass_wide_for_many_short_ones():
    groups, prompts, responses = rows(([0] * 8 + [1] * 8, [10] * 16, [5] * 15 + [90]))
    found = group_cuts(groups, prompts, responses, 200)
    assert all(len(part) * (10 + int(responses[part].max())) <= SEATS * 200 for part in found)
    assert sorted(row for part in found for row in part.tolist()) == list(range(16))


def rows(columns):
    return tuple(np.array(column) for column in columns)
