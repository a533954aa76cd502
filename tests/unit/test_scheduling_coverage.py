"""How much of the data an epoch of ADS reaches: 17.4k prompts, 64 clusters, 136 draws of 4 x 32, groups of 8.

The windows start at the easiest prompts. With ``adjacent`` moves they crawl: a cluster is drawn 8.5 times an epoch.
"""

from __future__ import annotations

import pytest

from tests.benchmarks.schedule_coverage import SOLVABILITY, epoch


@pytest.mark.parametrize(
    ("move", "data", "coverage"),
    [
        ("adjacent", "all solvable", 0.145),
        ("adjacent", "logistic", 0.145),
        ("outside", "all solvable", 0.86),
        ("outside", "logistic", 0.64),
    ],
)
def test_worked_coverage_of_an_epoch(move, data, coverage):
    found = epoch(move, SOLVABILITY[data], seed=0)
    assert found["coverage"] == pytest.approx(coverage, abs=0.02)


def test_moves_that_jump_over_the_window_reach_several_times_as_much():
    slow, fast = (epoch(move, SOLVABILITY["all solvable"], seed=1)["coverage"] for move in ("adjacent", "outside"))
    assert fast > 5 * slow
