"""Tables over the runs that are there: mean and standard deviation over seeds. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, stdev

from tests.benchmarks.gap.arms import ARMS, CORRECTIONS, REFERENCE, SAMPLERS, Arm
from tests.benchmarks.lines import source
from tests.benchmarks.section import Row
from tests.benchmarks.spread import table

FIGURES = ("accuracy", "pairs", "distance", "weights", "rules", "runs", "steps", "start", "source")
DISTANCES = ("mean, nats", "99th percentile", "largest", "k1", "k3", "effective share of the tokens")
LATE = 5
"""Last steps of a run, over which distances are averaged: the policy has become sharper by then."""


def figures(rows: Sequence[Row]) -> dict[str, str]:
    """`FIGURES`: tables, and what sentences hold; of every run that was made."""
    if not rows:
        return dict.fromkeys(FIGURES, "not measured")
    arms = {arm: [row for row in rows if (row["sampler"], row["correction"]) == arm] for arm in ARMS}
    arms = {arm: found for arm, found in arms.items() if found}
    return {
        "accuracy": accuracy_table(arms),
        "pairs": pairs_table(arms),
        "distance": distance_table(arms),
        "weights": weights_table(arms),
        "rules": rules_table(arms),
        "runs": str(len(rows)),
        "steps": str(max(len(row["sampled"]) for row in rows)),
        "start": f"{100 * fmean(row['curve'][0][1] for row in rows):.0f} %",
        "source": source("make gap", rows),
    }


def start_tables(rows: Sequence[Row]) -> dict[str, str]:
    """`start_distance`: of the samplers; `start_weights`: of the corrections."""
    if not rows:
        return dict.fromkeys(("start_distance", "start_weights"), "not measured")
    uncorrected = [row for row in rows if row["correction"] == REFERENCE.correction]
    names = ("mean", "p99", "max", "k1", "k3", "ess")
    apart = [[row["sampler"], f"{row['tokens']:,.0f}", *(f"{row[name]:.4f}" for name in names)] for row in uncorrected]
    cut = [
        [row["sampler"], row["correction"], f"{100 * row['cut']:.1f}", f"{100 * row['ess_corrected']:.1f}"]
        for row in rows
        if row["correction"] != REFERENCE.correction
    ]
    head = [
        "sampler",
        "tokens",
        "mean, nats",
        "99th percentile",
        "largest",
        "k1",
        "k3",
        "effective share of the tokens",
    ]
    return {
        "start_distance": table(head, apart),
        "start_weights": table(["sampler", "correction", "tokens cut, %", "effective share after it, %"], cut),
    }


def accuracy_table(arms: dict[Arm, list[Row]]) -> str:
    """Held-out pass@1 at fp32 over the steps; the difference to fp32 without a correction is taken seed by seed."""
    reference = {row["seed"]: _final(row) for row in arms.get(REFERENCE, [])}
    steps = sorted({step for rows in arms.values() for row in rows for step, _ in row["curve"] if step})
    lines = []
    for arm, rows in arms.items():
        held_out = [
            _spread([100 * value for row in rows for at, value in row["curve"] if at == step]) for step in steps
        ]
        apart = [100 * (_final(row) - reference[row["seed"]]) for row in rows if row["seed"] in reference]
        sampled = _spread([100 * fmean(row["sampled"]) for row in rows])
        lines.append([*arm, str(len(rows)), *held_out, _signed(apart), sampled])
    head = ["sampler", "correction", "seeds", *(f"step {step}, %" for step in steps)]
    return table([*head, "against fp32, points", "sampled over all steps, %"], lines)


def pairs_table(arms: dict[Arm, list[Row]]) -> str:
    """Differences between two runs of one seed, over samplers and seeds: a coarse sampler to fp32, and a correction to
    none with the same sampler. Mean and standard error in points."""
    coarse = [sampler for sampler in SAMPLERS if sampler != REFERENCE.sampler]
    compared = {"none, to fp32": [(Arm(sampler, "none"), REFERENCE) for sampler in coarse]}
    for name in CORRECTIONS:
        if name != "none":
            compared[f"{name}, to none"] = [(Arm(sampler, name), Arm(sampler, "none")) for sampler in coarse]
    lines = []
    for name, pairs in compared.items():
        found = [pair for arm, base in pairs for pair in _of_one_seed(arms.get(arm, []), arms.get(base, []))]
        if len(found) > 1:
            final = [_final(row) - _final(other) for row, other in found]
            whole = [fmean(row["sampled"]) - fmean(other["sampled"]) for row, other in found]
            lines.append([name, str(len(found)), _with_error(final), _with_error(whole)])
    return table(["correction", "pairs", "step 20", "sampled over all steps"], lines)


def distance_table(arms: dict[Arm, list[Row]]) -> str:
    """Per token, at the first step and over the last, without a correction."""
    lines = []
    for sampler in SAMPLERS:
        rows = arms.get(Arm(sampler, "none"), [])
        for when, part in (("first step", slice(0, 1)), (f"last {LATE}", slice(-LATE, None))):
            if rows:
                found = [_mean(row, name, part) for name in ("mean", "p99", "max", "k1", "k3", "ess") for row in rows]
                chunks = [found[start : start + len(rows)] for start in range(0, len(found), len(rows))]
                lines.append([sampler, when, *(_spread(chunk, 4) for chunk in chunks)])
    return table(["sampler", "", *DISTANCES], lines)


def weights_table(arms: dict[Arm, list[Row]]) -> str:
    """What the corrections cut, and how much of the tokens was left."""
    lines = []
    for arm, rows in arms.items():
        if arm.correction != "none":
            cut = [100 * _mean(row, "cut", slice(None)) for row in rows]
            left = [100 * _mean(row, "ess_corrected", slice(None)) for row in rows]
            lines.append([*arm, _spread(cut), _spread(left)])
    return table(["sampler", "correction", "tokens cut, %", "effective share after it, %"], lines)


def rules_table(arms: dict[Arm, list[Row]]) -> str:
    """Health rules that fired, in how many of the runs."""
    lines = []
    for arm, rows in arms.items():
        fired = Counter(rule for row in rows for rule in row["rules"])
        said = ", ".join(f"`{rule}` {count} of {len(rows)}" for rule, count in sorted(fired.items()))
        stopped = sum(bool(row["stopped_by"]) for row in rows)
        lines.append([*arm, said or "-", str(stopped)])
    return table(["sampler", "correction", "rules that fired", "runs stopped"], lines)


def _of_one_seed(rows: Sequence[Row], others: Sequence[Row]) -> list[tuple[Row, Row]]:
    return [(row, other) for row in rows for other in others if row["seed"] == other["seed"]]


def _with_error(shares: Sequence[float]) -> str:
    points = [100 * share for share in shares]
    return f"{fmean(points):+.1f} ± {stdev(points) / len(points) ** 0.5:.1f}"


def _final(row: Row) -> float:
    return float(row["curve"][-1][1])


def _mean(row: Row, name: str, part: slice) -> float:
    """Over some of the steps; NaN where the learner made no step."""
    return fmean(step[name] for step in row["distances"][part]) if row["distances"] else float("nan")


def _spread(values: Sequence[float], digits: int = 1) -> str:
    if not values:
        return "-"
    return f"{fmean(values):.{digits}f}" + (f" ± {stdev(values):.{digits}f}" if len(values) > 1 else "")


def _signed(values: Sequence[float]) -> str:
    return f"{'+' if values and fmean(values) >= 0 else ''}{_spread(values)}"
