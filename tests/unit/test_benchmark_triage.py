"""Triage against what training gains: the pairs, and how verdicts are counted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmarks.section import Row
from tests.benchmarks.triage.figures import FIGURES, figures, gain, rates
from tests.benchmarks.triage.pairs import PAIRS, SFT_ON, TASKS

LIMITS = {"min_teaching": 0.0, "min_headroom": 0.05, "min_passk_gap": 0.1, "min_entropy": 0.18}
"""Of the day of the measurement."""


def row(pair: int, zero_variance: float, before: float, after: float) -> Row:
    """A measured pair; without groups that carry a gradient it is refused."""
    found: dict[str, Any] = {
        "zero_variance_share": zero_variance,
        "all_right_share": 0.0,
        "all_wrong_share": zero_variance,
        "pass_at_1": before,
        "pass_at_k": before + 0.3,
        "k": 16,
        "entropy": 0.5,
        "step": {"group_size": 8, "prompts": 8, "attempts": 1},
        "limits": LIMITS,
    }
    of = {"date": "2026-11-01", "commit": "abc", "machine": {"processor": "P", "cores": 2}}
    versions = {"torch": "1", "transformers": "2"}
    named = {"pair": pair, "task": "sum", "sft": 8}
    return {**named, "triage": found, "before": before, "after": after, **of, "versions": versions}


def test_every_pair_is_a_known_task_and_stands_once():
    assert len(set(PAIRS)) == len(PAIRS) >= 14
    assert {pair.task for pair in PAIRS} | set(SFT_ON) <= set(TASKS)


def test_both_halves_have_the_model_as_it_is_and_after_sft():
    for half in (PAIRS[::2], PAIRS[1::2]):
        assert {pair.sft for pair in half} == {0, 8, 32}


def test_refused_and_accepted_pairs_are_counted_by_what_they_gained():
    rows = [row(0, 1.0, 0.0, 0.0), row(1, 1.0, 0.0, 0.2), row(2, 0.2, 0.3, 0.4), row(3, 0.2, 0.3, 0.31)]
    assert [round(gain(one), 2) for one in rows] == [0.0, 0.2, 0.1, 0.01]
    assert rates(rows) == "of 2 refused pairs 1 gained 5 points or more, of 2 accepted pairs 1"


def test_the_halves_are_reported_apart_and_the_verdict_is_that_of_the_present_rule():
    found = figures([row(1, 1.0, 0.0, 0.2), row(0, 0.2, 0.3, 0.9)])
    assert tuple(found) == FIGURES
    assert found["chosen"] == "of 0 refused pairs 0 gained 5 points or more, of 1 accepted pairs 1"
    assert found["reported"] == "of 1 refused pairs 1 gained 5 points or more, of 0 accepted pairs 0"
    lines = found["pairs"].splitlines()
    assert [line.split("|")[8].strip() for line in lines[2:]] == ["accept", "refuse"]


@pytest.mark.parametrize("name", FIGURES)
def test_without_a_row_every_figure_says_so(name):
    assert figures([])[name] == "not measured"
