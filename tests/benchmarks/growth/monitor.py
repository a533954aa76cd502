"""The health monitor with the shipped rules, after so many steps.

Every signal that a shipped rule reads exists in every step, the dev split and canaries included, so that nothing is
passed over; values wander so that no rule holds for long.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from statistics import median

from tests.benchmarks.growth.curve import Cost, Curve
from tests.benchmarks.growth.measures import least_ms, peak
from tests.benchmarks.section import Row

MEASURED = 100
"""The last steps; the middle one counts."""


def measure(size: int, folder: Path) -> Row:
    from components.health.monitor import Monitor
    from components.health.rulebook import load_rules
    from components.types import StepRecord
    from tests.benchmarks.growth.logs import read_by_rules, shipped

    names, stream, monitor = read_by_rules(), random.Random(0), Monitor(load_rules(shipped()))
    times: list[float] = []
    with peak() as memory:
        for step in range(size):
            record = StepRecord(step, {name: stream.uniform(0.4, 0.6) for name in names})
            began = time.process_time_ns()
            monitor.observe(record)
            if step >= size - MEASURED:
                times.append((time.process_time_ns() - began) / 1e6)
    state = json.dumps(monitor.state_dict())
    return {
        "step_ms": median(times),
        "save_ms": least_ms(lambda: json.dumps(monitor.state_dict())),
        "state_kb": len(state) / 1e3,
        "state_mb": memory.mb,
    }


CURVE = Curve(
    "steps", "monitor", (10**2, 10**3, 10**4, 10**5), 100, measure,
    (
        Cost("step_ms", "one more step"),
        Cost("save_ms", "state to JSON"),
        Cost("state_kb", "state in a checkpoint"),
        Cost("state_mb", "memory"),
    ),
)  # fmt: skip
