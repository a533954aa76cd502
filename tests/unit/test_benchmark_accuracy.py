"""Time to accuracy: when a target is reached, and what a clock counts."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.benchmarks.accuracy.clock import Clock
from tests.benchmarks.accuracy.reached import figures, reached


def curve(*values: float) -> list[tuple[int, float, float]]:
    return [(2 * number, 10.0 * number, value) for number, value in enumerate(values, start=1)]


@pytest.mark.parametrize(
    ("values", "seconds"),
    [
        ((0.3, 0.6, 0.7), 20.0),
        ((0.6, 0.5, 0.6), 30.0),  # it counts once it stays
        ((0.7, 0.7, 0.5), None),  # and it did not
        ((0.3, 0.4, 0.5), None),
        ((), None),
    ],
)
def test_a_target_is_reached_where_every_later_measurement_holds_it(values, seconds):
    assert reached(curve(*values), 0.6) == seconds


def row(*values: float, seconds: float = 60.0) -> dict[str, Any]:
    phases = dict.fromkeys(("rollout", "scoring", "log-probs", "update", "sync", "bookkeeping"), seconds / 6)
    return {"seconds": seconds, "steps": 6, "completions": 60, "curve": curve(*values), "phases_s": phases}


def test_ratios_are_made_seed_by_seed_of_those_that_both_sides_reach():
    slow, never = row(0.3, 0.4, 0.7), row(0.3, 0.4, 0.5)
    rows = {"trl 1": slow, "same 1": row(0.7, 0.7, 0.7), "trl 2": slow, "same 2": never}
    found = figures(rows)
    assert found["ratio_same"] == "3.0"
    assert "1 of 2" in found["time"]
    assert found["ratio_own"] == "-"


def test_a_clock_gives_every_moment_to_the_innermost_phase_and_none_while_it_is_stopped():
    clock = Clock()
    inner = clock.counted("rollout", lambda: time.sleep(0.02))

    def outer() -> None:
        inner()
        time.sleep(0.02)
        with clock.stopped():
            inner()

    clock.counted("update", outer)()
    phases = clock.phases()
    assert 0.02 <= phases["rollout"] < 0.04 <= 0.02 + phases["update"]
    assert sum(phases.values()) == pytest.approx(clock.seconds(), abs=0.01)
    assert phases["scoring"] == 0
