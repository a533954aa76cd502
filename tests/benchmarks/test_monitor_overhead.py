"""What watching costs: milliseconds of the health monitor a step, with the shipped rules: `make bench`.

Every signal that a shipped rule reads exists in every step, the dev split and canaries included, so that nothing is
passed over; values wander so that no rule holds for long. Times are those of the processor.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from statistics import median

import pytest
import torch
from rich.console import Console
from rich.table import Table
from test_objective_cost import demo, policy_and_batch

from components.config.judgement import RuleSettings
from components.config.load import read_rules
from components.health import Monitor
from components.health.rules import compile_rule
from components.learner import build_learner
from components.types import StepRecord

FILE = Path(__file__).parents[2] / "configs" / "health" / "default.yaml"
RULES = {name: RuleSettings.model_validate(rule) for name, rule in read_rules(FILE).items()}
LENGTHS = (100, 10_000, 100_000)
MEASURED = 100
"""Steps that are timed at each length; the middle one counts."""
LIMIT = 1e-3
"""Seconds a step at the longest history."""


def read_by_rules() -> list[str]:
    """Every signal of a condition or an exception."""
    compiled = [compile_rule(name, rule) for name, rule in RULES.items()]
    return sorted({signal for rule in compiled for condition in rule.conditions for signal in condition.signals})


def costs() -> dict[int, float]:
    """Length of the history -> seconds of one more step."""
    names, stream, monitor = read_by_rules(), random.Random(0), Monitor(RULES)
    times: dict[int, list[float]] = {length: [] for length in LENGTHS}
    for step in range(max(LENGTHS)):
        record = StepRecord(step, {name: stream.uniform(0.4, 0.6) for name in names})
        began = time.process_time_ns()
        monitor.observe(record)
        took = (time.process_time_ns() - began) / 1e9
        for length in LENGTHS:
            if length - MEASURED <= step < length:
                times[length].append(took)
    return {length: median(values) for length, values in times.items()}


def update_of_the_demo() -> float:
    """Seconds of the demo's update, on one thread; sampling, which takes more, is not counted."""
    settings = demo(None)
    policy, batch = policy_and_batch(settings)
    learner, times = build_learner(policy, settings), []
    for step in range(4):
        began = time.process_time()
        learner.step(batch, step)
        times.append(time.process_time() - began)
    return median(times[1:])


@pytest.mark.timeout(1800)
def test_the_monitor_takes_at_most_a_millisecond_a_step_however_long_the_run() -> None:
    torch.set_num_threads(1)
    found, update = costs(), update_of_the_demo()
    table = Table("steps behind it", "ms a step", "of the demo's update", title=f"monitor with {len(RULES)} rules")
    for length, seconds in found.items():
        table.add_row(f"{length:,}", f"{1e3 * seconds:.2f}", f"{seconds / update:.3%}")
    Console().print(table)
    assert found[max(LENGTHS)] <= LIMIT
    assert found[max(LENGTHS)] <= 2 * found[min(LENGTHS)]
