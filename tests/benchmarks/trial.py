"""Faults that were planted by hand, each once, with responses and without.

The trial of generated faults is `tests.benchmarks.health` (`make trial`); `docs/health-trial.md` has its tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from components.errors import InputError
from components.evaluation.statistics import wilson
from tests.benchmarks.health.arms import DEFAULT_RULES, Arm, arms_of
from tests.benchmarks.health.faults import FAULTS
from tests.benchmarks.health.judged import BASE, Scored, scored
from tests.benchmarks.health.running import Task, not_stored, run_all
from tests.benchmarks.health.scoring import detection, false_alarms, rescue
from tests.benchmarks.section import Row, Rows, Scale, Section, skipped
from tests.benchmarks.spread import table

SEED = 1
HEALTHY_SEEDS = (1, 4, 7)
"""Healthy runs from the SFT checkpoint of that seed; what is healthy is measured on them."""
CELL = "every fault, one seed"


class Trial(Section):
    title = "Health trial"
    limit = 1800.0
    resumes = True

    def cells(self, scale: Scale) -> Sequence[str]:
        return [CELL]

    def measure(self, cell: str, scale: Scale, folder: Path) -> Row:
        if scale == "smoke":
            return skipped("tests/unit/test_health_trial.py runs it small")
        results, arms = folder / "runs", arms_of("both", DEFAULT_RULES)
        for arm in arms:
            run_all(not_stored(results, wanted(arm)), folder / "work", results, jobs=2)
        return summary(scored(results, DEFAULT_RULES))

    def figures(self, rows: Rows) -> dict[str, str]:
        row = rows.get(CELL, skipped("not measured"))
        if "skipped" in row:
            return {"table": str(row["skipped"])}
        faults = row["faults"]
        acted, well = sum(one["acted"] for one in faults.values()), [sum(o[k] for o in faults.values()) for k in WELL]
        share = wilson(acted, len(faults))
        head = ["fault", "acted on, steps after it began", "by", "final accuracy without responses", "with"]
        lines = [[f"`{name}`", *_line(one)] for name, one in faults.items()]
        return {
            "table": table(head, lines),
            "faults": str(len(faults)),
            "detected": f"{acted} of {len(faults)} ({share.low:.0%} to {share.high:.0%})",
            "well_without": f"{well[0]} of {len(faults)}",
            "well_with": f"{well[1]} of {len(faults)}",
            "false_alarms": f"{row['false_alarms']} in {row['healthy_steps']} steps of {row['healthy_runs']} runs",
        }


def _line(one: Row) -> list[str]:
    when = f"+{one['after']:.0f}" if one["acted"] else "never"
    return [when, f"`{one['first']}`" if one["first"] else "-", f"{one['off']:.0%}", f"{one['on']:.0%}"]


WELL = ("well_off", "well_on")


def wanted(arm: Arm) -> list[Task]:
    """Every run of one arm in this part of the trial."""
    return [*((arm, BASE, seed) for seed in HEALTHY_SEEDS), *((arm, fault, SEED) for fault in FAULTS)]


def summary(found: Scored) -> Row:
    """What the rules do, fault by fault. Accuracies are shares of the healthy mean.

    Raises:
        InputError: A fault has no run, or a healthy run broke: a share of what is left would say something else.
    """
    absent = [name for name in FAULTS if not found.faulty.get(name) or not found.responding.get(name)]
    broken = [f"{run.name}: {run.crashed}" for run in found.healthy if run.crashed]
    if absent or broken:
        what = "; ".join([*(f"no run of {name}" for name in absent), *broken])
        raise InputError(what, where="the health trial", how="see why in the log, and measure it again")
    alarms, faults = found.alarms, {}
    healthy = false_alarms(found.healthy, alarms).rate
    for name, runs in found.faulty.items():
        said, responding = detection(runs, alarms, found.norm), found.responding[name]
        off, on = rescue(runs, found.norm), rescue(responding, found.norm)
        norm = fmean(found.norm.finals[run.sft_seed] for run in runs)
        faults[name] = {
            "acted": said.acted,
            "after": said.after.median if said.after else None,
            "first": said.first,
            "off": fmean(run.final for run in runs) / norm,
            "on": fmean(run.final for run in responding) / norm,
            "well_off": off.well if off else 0,
            "well_on": on.well if on else 0,
        }
    return {
        "faults": faults,
        "false_alarms": healthy.count,
        "healthy_steps": healthy.steps,
        "healthy_runs": len(found.healthy),
    }
