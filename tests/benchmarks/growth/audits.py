"""`evenkeel audit`: a log read and judged by the shipped rules; and one in which two processes logged every step."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.growth.curve import Cost, Curve
from tests.benchmarks.growth.logs import shipped, written
from tests.benchmarks.growth.measures import cpu_s, peak
from tests.benchmarks.section import Row


def measure(size: int, folder: Path) -> Row:
    from components.health.readers import read_log
    from components.health.rulebook import load_rules
    from flows.judging.audit_log import judge

    source, rules = written(size, folder), load_rules(shipped())
    logs = []
    with peak() as memory:
        read = cpu_s(lambda: logs.append(read_log(source)))
        judged = cpu_s(lambda: judge(source, logs[0], rules))
    logs.clear()
    twice = folder / "twice.jsonl"
    with source.open("rb") as lines, twice.open("wb") as file:
        for line in lines:
            file.write(line + line)
    again = cpu_s(lambda: read_log(twice))
    twice.unlink()
    return {"read_s": read, "judge_s": judged, "twice_s": again, "audit_mb": memory.mb}


CURVE = Curve(
    "steps", "audit", (10**2, 10**3, 10**4, 10**5), 100, measure,
    (
        Cost("read_s", "log read"),
        Cost("judge_s", "log judged"),
        Cost("twice_s", "log read in which every step stands twice"),
        Cost("audit_mb", "peak memory"),
    ),
)  # fmt: skip
