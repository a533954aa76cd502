"""Time to accuracy: when a target is reached, and what a clock counts."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
import torch

from components.config.advantages import GrpoAdvantage
from components.objectives.advantages.groups import standardised
from tests.benchmarks.accuracy import origin, task
from tests.benchmarks.accuracy.clock import Clock
from tests.benchmarks.accuracy.reached import figures, reached
from tests.benchmarks.accuracy.task import DEMO


def curve(*values: float) -> list[tuple[int, float, float]]:
    return [(2 * number, 10.0 * number, value) for number, value in enumerate(values, start=1)]


@pytest.mark.parametrize(
    ("values", "point"),
    [
        ((0.3, 0.6, 0.7), (4, 20.0, 0.6)),
        ((0.6, 0.5, 0.6), (6, 30.0, 0.6)),  # it counts once it stays
        ((0.7, 0.7, 0.5), None),  # and it did not
        ((0.3, 0.4, 0.5), None),
        ((), None),
    ],
)
def test_a_target_is_reached_where_every_later_measurement_holds_it(values, point):
    assert reached(curve(*values), 0.6) == point


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


def test_what_is_known_of_the_moment_is_said_with_it():
    """The steps to the target, how far measurements are apart, and where both sides need the same number of steps."""
    fast = {"seconds": 30.0, "curve": [(step, seconds / 2, value) for step, seconds, value in curve(0.3, 0.7, 0.7)]}
    rows = {
        "trl 1": row(0.3, 0.7, 0.7),
        "same 1": row() | fast,
        "trl 2": row(0.3, 0.4, 0.7),
        "same 2": row() | fast,
    }
    found = figures(rows)
    assert "| TRL `GRPOTrainer` | 2 of 2 | 25.0 s (20.0 to 30.0) | 1 | 5 (4 to 6) |" in found["time"]
    assert (found["every"], found["same_step"]) == ("2", "1 of 2")
    assert found["apart_trl"] == "10.0 s (10.0 to 10.0)" and found["apart_same"] == "5.0 s (5.0 to 5.0)"
    assert found["ratio_same"] == "2.5 (2.0 to 3.0)"


def test_passes_of_a_batch_are_rows_of_one_table():
    found = figures({"passes of TRL": {"step_cpu_s": {"1": [1.0, 1.2], "2": [2.0]}}})
    assert "| 1 | 1.10 s (1.00 to 1.20) |\n| 2 | 2.00 s |" in found["passes"]


def test_advantages_of_the_same_recipe_are_trls():
    """Rewards less their group's mean, over their group's unbiased standard deviation and 1e-4."""
    how = DEMO["full"].settings(DEMO["full"].same, 0).objective.advantage
    assert isinstance(how, GrpoAdvantage) and how.std != "none"
    rewards = torch.tensor([[1.0, 0, 0, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1]])
    trls = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)
    found = standardised(rewards, torch.ones_like(rewards, dtype=torch.bool), how.std, how.eps)
    assert torch.allclose(found.float(), trls, atol=1e-6)


def test_a_prepared_checkpoint_is_used_again_only_for_what_it_was_made_by(tmp_path, monkeypatch):
    made = []

    def run_stage(stage, settings, layout):
        layout.root.mkdir(parents=True, exist_ok=True)
        made.append((stage, layout.root))

    monkeypatch.setattr(task, "run_stage", run_stage)
    small = DEMO["smoke"]
    first = small.prepared(tmp_path)
    assert [stage for stage, _ in made] == list(small.stages)
    assert small.prepared(tmp_path).root == first.root and len(made) == len(small.stages)
    second = replace(small, changes=(*small.changes, "sft.steps=13")).prepared(tmp_path)
    assert second.root != first.root and len(made) == 2 * len(small.stages)


def test_code_and_packages_are_of_the_origin_of_a_checkpoint(monkeypatch):
    settings, stages = DEMO["smoke"].settings(DEMO["smoke"].same, 0), DEMO["smoke"].stages
    before = origin.origin(settings, stages)
    assert before == origin.origin(settings, stages)
    monkeypatch.setattr(origin, "versions", lambda: {"torch": "another"})
    packages = origin.origin(settings, stages)
    monkeypatch.setattr(origin, "sha256_file", lambda path: "another")
    assert len({before, packages, origin.origin(settings, stages)}) == 3


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
