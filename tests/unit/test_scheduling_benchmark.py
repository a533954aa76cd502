"""The arithmetic behind the table of schedules."""

from __future__ import annotations

import pytest

from tests.benchmarks.schedules import ratio, reached_at, table


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ([(0, 0.3), (100, 0.5), (200, 0.7), (300, 0.9)], 150.0),  # means 0.4, 0.6, 0.8 at 50, 150, 250
        ([(0, 0.3), (100, 0.4), (200, 0.6), (300, 0.8)], 200.0),  # 0.35, 0.5, 0.7: half way between 150 and 250
        ([(0, 0.3), (100, 0.9), (200, 0.2), (300, 0.2)], 50.0),
        ([(0, 0.3), (100, 0.8), (200, 0.3)], None),  # one lucky measurement
        ([(0, 0.9)], None),
        ([], None),
    ],
)
def test_worked_crossings_of_sixty_per_cent(curve, expected):
    assert reached_at(curve, 0.6) == (None if expected is None else pytest.approx(expected))


def test_the_ratio_is_that_of_the_sums_and_its_interval_holds_it():
    found, low, high = ratio([50, 60, 40], [100, 100, 100])
    assert found == pytest.approx(0.5)
    assert 0.4 <= low < found < high <= 0.6


def test_equal_ratios_have_no_spread():
    assert ratio([10, 20, 30], [20, 40, 60]) == pytest.approx((0.5, 0.5, 0.5))


def row(schedule: str, seed: int, *accuracies: float) -> dict:
    curve = [(100.0 * place, accuracy) for place, accuracy in enumerate(accuracies)]
    return {"schedule": schedule, "seed": seed, "budget": 1000, "target": 0.6, "curve": curve, "seconds": 5.0}


def test_the_table_pairs_by_seed_and_says_which_runs_never_arrived():
    rows = [
        row("uniform", 0, 0.3, 0.4, 0.6, 0.8),
        row("ads", 0, 0.3, 0.9),
        row("uniform", 1, 0.3, 0.3),
        {"schedule": "ads", "seed": 1, "budget": 1000, "target": 0.6, "failed": "OSError: full"},
    ]
    said = table(rows, [0.6], 1000)
    assert "ads, seed 1 failed: OSError: full" in said
    assert "| 60% | uniform | 2 | 1 | 600 | - | - | 5 |" in said
    assert "| 60% | ads | 1 | 0 | 50 | 25% | 25% to 25% | 5 |" in said
    assert "counts with the whole budget of 1,000 completions" in said
