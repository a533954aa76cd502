"""The trial as markdown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from tests.benchmarks.health.arms import PLAIN_ARM
from tests.benchmarks.health.detectors.rules import PLAIN_STREAK
from tests.benchmarks.health.grounds import TOY, Ground
from tests.benchmarks.health.healthy import HEALTHY
from tests.benchmarks.health.judged import BASE, Scored, scored
from tests.benchmarks.health.plan import Half
from tests.benchmarks.health.scoring import Detection, Quartiles, detection, false_alarms, rescue
from tests.benchmarks.health.store import read_all
from tests.benchmarks.health.truth import hurt, norm_of


def page(results: Path, rules: Path, half: Half, ground: Ground = TOY) -> str:
    """Every figure of one half."""
    found = scored(results, rules, half, ground)
    if not found.healthy:
        return f"Half: {half}. No healthy runs yet.\n"
    detections = {
        name: {fault: detection(runs, alarms, found.norm) for fault, runs in found.faulty.items()}
        for name, alarms in found.alarms.items()
    }
    steps = sum(len(run.records) for run in found.healthy)
    parts = [
        f"Half: {half}. {len(found.healthy)} healthy runs of {steps:,} steps, {sum(map(len, found.faulty.values()))} "
        "with faults.",
        false_alarm_table(found),
        alarm_list(found),
        response_cost(found),
        fault_table(found, detections["rules"]),
        comparison_table(detections),
        "\n".join(f"- {line}" for line in [*cautions(found), *conclusions(detections)]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def false_alarm_table(found: Scored) -> str:
    """What each detector says of healthy runs."""
    lines = header("false alarms", "count", "in 1,000 steps", "95 %", "healthy runs with any", "95 %")
    judged = [(name, false_alarms(found.healthy, alarms)) for name, alarms in found.alarms.items()]
    judged.insert(1, ("rules, warnings included", false_alarms(found.healthy, found.alarms["rules"], acting=False)))
    for name, said in judged:
        rate, runs = said.rate, said.runs
        lines.append(
            row(
                name,
                rate.count,
                f"{rate.rate:.2f}",
                f"{rate.low:.2f} to {rate.high:.2f}",
                f"{runs.count} of {runs.n}",
                f"{runs.low:.0%} to {runs.high:.0%}",
            )
        )
    return "\n".join(lines)


def alarm_list(found: Scored) -> str:
    """Which rules speak in healthy runs, and in which."""
    acting = false_alarms(found.healthy, found.alarms["rules"]).rules
    every = false_alarms(found.healthy, found.alarms["rules"], acting=False).rules
    if not every:
        return ""
    lines = header("rule that speaks in healthy runs", "acts", "speaks", "where")
    for rule in sorted({rule for rule, _ in every}):
        where = {condition: count for (name, condition), count in sorted(every.items()) if name == rule}
        acted = sum(count for (name, _), count in acting.items() if name == rule)
        said = ", ".join(f"{condition} {count}" for condition, count in where.items())
        lines.append(row(rule, acted, sum(where.values()), said))
    return "\n".join(lines)


def response_cost(found: Scored) -> str:
    """What responses do to runs that need none: the same seeds with and without."""
    plain = {run.name: run for run in found.healthy}
    pairs = [(plain[run.name], run) for run in found.responding_healthy if run.name in plain]
    if not pairs:
        return ""
    touched = [(off, on) for off, on in pairs if on.responses]
    gains = [on.final - off.final for off, on in pairs]
    lines = header("healthy runs with responses", "touched", "stopped", "steps lost", "held-out with, less without")
    lost = sum(len(on.records) - on.progress for _, on in pairs)
    stopped = sum(bool(on.stopped_by) for _, on in pairs)
    lines.append(row(len(pairs), len(touched), stopped, lost, f"{100 * fmean(gains):+.1f} points on average"))
    return "\n".join(lines)


def fault_table(found: Scored, detections: Mapping[str, Detection]) -> str:
    """What the rules do about each fault."""
    lines = header(
        "fault",
        "runs (crashed)",
        "hurt",
        "acted on",
        "spoke at all",
        "acts after hurt, steps (quartiles)",
        "acts after beginning",
        "acts first",
        "ends well without responses",
        "with responses",
        "steps lost",
    )
    for fault, d in detections.items():
        off = rescue(found.faulty[fault], found.norm)
        on = rescue(found.responding.get(fault, []), found.norm)
        lines.append(
            row(
                fault,
                f"{d.runs}{f' ({d.crashed})' if d.crashed else ''}",
                d.hurt,
                d.acted,
                d.spoke,
                spread(d.delays),
                spread(d.after),
                d.first or "-",
                f"{off.well} of {off.runs}" if off else "-",
                f"{on.well} of {on.runs}" if on else "-",
                f"{on.lost:g}" if on else "-",
            )
        )
    return "\n".join(lines)


def comparison_table(detections: Mapping[str, Mapping[str, Detection]]) -> str:
    """Acted on, and the median delay, of every detector."""
    lines = header("acted on; median steps after hurt", *detections)
    for fault, first in next(iter(detections.values())).items():
        cells = [brief(of[fault]) for of in detections.values()]
        lines.append(row(f"{fault} ({first.runs})", *cells))
    return "\n".join(lines)


def cautions(found: Scored) -> list[str]:
    """What the figures above must be read with."""
    often = false_alarms(found.healthy, found.alarms["rules"]).runs
    said = [f"Of anything, the rules would seem to see {often.rate:.0%}: that many healthy runs hold an acting alarm"]
    if all(len(run.records) < PLAIN_STREAK for runs in found.faulty.values() for run in runs):
        said.append(f"entropy < 0.5 has had no run long enough to speak: it needs {PLAIN_STREAK} steps")
    return said


def conclusions(detections: Mapping[str, Mapping[str, Detection]]) -> list[str]:
    """Faults that do no harm here, that nothing sees, and that nothing sees before they hurt."""
    faults = next(iter(detections.values()))
    found = {fault: [of[fault] for of in detections.values()] for fault in faults}
    harmless = [fault for fault, (first, *_) in found.items() if 2 * first.hurt < first.runs]
    unseen = [fault for fault, of in found.items() if all(2 * d.acted < d.runs for d in of)]
    late = [
        fault
        for fault, of in found.items()
        if fault not in harmless and fault not in unseen and all(2 * d.early < d.hurt for d in of)
    ]
    by_rules = [fault for fault, d in faults.items() if fault not in harmless and 2 * d.early < d.hurt]
    return [
        f"{title}: {', '.join(names) or 'none'}"
        for title, names in (
            ("Hurts fewer than half of its runs", harmless),
            ("Acted on by nothing in more than half of its runs", unseen),
            ("Seen by something, but by nothing before it hurts", late),
            ("Hurts, and the rules act too late or never in more than half of the runs hurt", by_rules),
        )
    ]


def norm_table(results: Path) -> str:
    """What healthy runs reach, and how often a healthy run would count as hurt."""
    plain = read_all(results / PLAIN_ARM.name)
    healthy = {name: [run for run in plain if run.condition == name] for name in HEALTHY}
    norm = norm_of(healthy[BASE])
    lines = header("healthy", "runs", "held-out before", "after", "counts as hurt", "s a run")
    for name, runs in healthy.items():
        if runs:
            before, after = (fmean(value) for value in zip(*((r.held_out[0][1], r.final) for r in runs), strict=True))
            known = all(run.sft_seed in norm.finals for run in runs)
            low = str(sum(hurt(run, norm) is not None for run in runs)) if known else "-"
            seconds = fmean(run.seconds for run in runs)
            lines.append(row(name, len(runs), f"{before:.0%}", f"{after:.0%}", low, f"{seconds:.0f}"))
    return "\n".join(lines)


def brief(d: Detection) -> str:
    return f"{d.acted}; {d.delays.median:+g}" if d.delays else str(d.acted)


def spread(q: Quartiles | None) -> str:
    return f"{q.median:+g} ({q.low:+g} to {q.high:+g})" if q else "-"


def header(*names: str) -> list[str]:
    return [row(*names), "|" + " --- |" * len(names)]


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"
