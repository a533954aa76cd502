"""The log of a run: appending to it, cutting it back when the run is resumed, reading it, writing the outputs of it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.growth.curve import Cost, Curve
from tests.benchmarks.growth.measures import cpu_s, peak, wall_s
from tests.benchmarks.section import Row
from tests.code_graph import ROOT

OTHER_SIGNALS = 40
"""In addition to those that rules read."""
EVERY = 50
"""Steps between two warnings, each with its entry in the ledger and the outcome."""
APPENDED = 30
QUIET = ("nonfinite", "updates_skipped", "canar", "mismatch", "kl_", "clip_", "ties_")
"""Beginnings of signals that are 0 in a healthy run; the others wander."""
EVIDENCE = [0.4, 0.5, 0.6] * 5


def shipped() -> Path:
    return ROOT / "configs/health/default.yaml"


def read_by_rules() -> list[str]:
    """Every signal of a condition or an exception."""
    from components.health.rulebook import load_rules
    from components.health.rules import compile_rule

    compiled = [compile_rule(name, rule) for name, rule in load_rules(shipped()).items()]
    return sorted({signal for rule in compiled for condition in rule.conditions for signal in condition.signals})


def verdict(step: int) -> dict[str, Any]:
    return {
        "rule": "zero_variance", "level": "warn", "step": step, "reason": "zero_variance held for 20 steps",
        "evidence": {"zero_variance_share": EVIDENCE}, "clean": step - 1,
    }  # fmt: skip


def pair(step: int) -> dict[str, Any]:
    """A preference pair as the loop keeps them."""
    chosen, rejected = f"{step}+1={step + 1} " * 8, f"{step}+1={step} " * 8
    return {"step": step, "prompt_id": f"{step % 1000:016x}", "chosen": chosen, "rejected": rejected}


def records(size: int) -> Iterator[dict[str, Any]]:
    """Rows of a log, of a healthy run's values, with a warning now and then."""
    stream = random.Random(0)
    names = [*read_by_rules(), *(f"schedule_other_{number}" for number in range(OTHER_SIGNALS))]
    for step in range(size):
        signals = {name: stream.uniform(0.4, 0.6) for name in names}
        signals |= {name: 0.0 for name in names if name.startswith(QUIET)} | {"progress": float(step), "ess": 1.0}
        verdicts = [verdict(step)] if step % EVERY == EVERY - 1 else []
        yield {"step": step, "signals": signals, "notes": {"pairs": [pair(step)], "verdicts": verdicts}}


def ledger(size: int) -> list[dict[str, Any]]:
    """Of that log."""
    entries: list[dict[str, Any]] = []
    for number, step in enumerate(range(EVERY - 1, size, EVERY), start=1):
        entries += [
            {"kind": "response", "number": number, "step": step, "rule": "zero_variance", "asked": "warn",
             "level": "warn", "reason": "zero_variance held for 20 steps", "saw": {"zero_variance_share": EVIDENCE},
             "changes": [], "back_to": None, "quarantined": [], "did": ""},
            {"kind": "outcome", "of": number, "step": step + 10, "recovered": True,
             "signals": {"zero_variance_share": [0.6, 0.5]}, "cost_steps": 0},
        ]  # fmt: skip
    return entries


def written(size: int, folder: Path) -> Path:
    """A log of so many steps; made once, a row at a time: memory that a process had before is no growth later on."""
    from components.files import dump_line

    path = folder / f"log-{size}.jsonl"
    if not path.exists():
        with path.open("w", encoding="utf-8") as file:
            file.writelines(dump_line(row) for row in records(size))
    return path


def measure(size: int, folder: Path) -> Row:
    """Appending is on the clock, for it waits for the disk; all else is time of the processor."""
    from components.files import append_line, cut_rows, write_jsonl
    from components.health.records import read_records
    from components.health.responses import read_ledger

    source, row = written(size, folder), next(records(1))
    log = folder / "appended.jsonl"
    shutil.copyfile(source, log)
    appended = [1e3 * wall_s(lambda: append_line(log, row)) for _ in range(APPENDED)]
    with peak() as resuming:
        resumed = cpu_s(lambda: cut_rows(log, size))
    entries = folder / "ledger.jsonl"
    write_jsonl(entries, ledger(size))
    with peak() as reading:
        read = cpu_s(lambda: (read_records(source), read_ledger(entries)))
    log.unlink()
    return {
        "append_ms": median(appended),
        "resume_s": resumed,
        "resume_mb": resuming.mb,
        "read_s": read,
        "read_mb": reading.mb,
    }


CURVE = Curve(
    "steps", "log", (10**2, 10**3, 10**4, 10**5), 100, measure,
    (
        Cost("append_ms", "one more row, flushed (clock)"),
        Cost("resume_s", "cut back on resuming"),
        Cost("resume_mb", "its peak memory"),
        Cost("read_s", "records and ledger read"),
        Cost("read_mb", "its peak memory"),
    ),
)  # fmt: skip
