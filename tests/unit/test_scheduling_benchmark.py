"""The arithmetic behind the table of schedules."""

from __future__ import annotations

import pytest

from tests.benchmarks.schedules.figures import SECONDS, ratio, reached_at, table


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
    timed = [(completions, accuracy, completions / 10) for completions, accuracy in curve]
    assert reached_at(timed, 0.6) == (None if expected is None else pytest.approx(expected))
    assert reached_at(timed, 0.6, SECONDS) == (None if expected is None else pytest.approx(expected / 10))


def test_the_ratio_is_that_of_the_sums_and_its_interval_holds_it():
    found, low, high = ratio([50, 60, 40], [100, 100, 100])
    assert found == pytest.approx(0.5)
    assert 0.4 <= low < found < high <= 0.6


def test_equal_ratios_have_no_spread():
    assert ratio([10, 20, 30], [20, 40, 60]) == pytest.approx((0.5, 0.5, 0.5))


def row(method: str, seed: int, *accuracies: float) -> dict:
    curve = [(100.0 * place, accuracy, 2.0 * place) for place, accuracy in enumerate(accuracies)]
    spent = {"sampled": 1000.0, "seconds": 20.0, "dead": 0.25}
    return {"task": "demo", "method": method, "seed": seed, "budget": 1000, "curve": curve, **spent}


def test_the_table_pairs_by_seed_and_states_which_runs_missed_the_target():
    rows = [
        row("uniform", 0, 0.3, 0.4, 0.6, 0.8),
        row("ads", 0, 0.3, 0.9),
        row("uniform", 1, 0.3, 0.3),
        {"task": "demo", "method": "ads", "seed": 1, "budget": 1000, "failed": "OSError: full"},
    ]
    found = table(rows)
    assert "ads, seed 1 failed: OSError: full" in found
    assert "| 60% | uniform | 2 | 1 | 600 | - | - | - | 25% |" in found
    assert "| 60% | ads | 1 | 0 | 50 | 25% (25% to 25%) | - | 25% (25% to 25%) | 25% |" in found
