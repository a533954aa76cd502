"""Generated faults as markdown."""

from __future__ import annotations

from pathlib import Path

from components.evaluation.statistics import wilson
from tests.benchmarks.health.generated.drawing import Half
from tests.benchmarks.health.generated.judged import Judged, judged, shares
from tests.benchmarks.health.grounds import TOY, Ground
from tests.benchmarks.health.table import header, row


def page(results: Path, rules: Path, half: Half, ground: Ground = TOY) -> str:
    """One half of the kinds."""
    found = judged(results, rules, half, ground)
    if not found:
        return f"Kinds: {half}. No runs yet.\n"
    return f"Kinds: {half}. {len(found)} faults.\n\n{share_table(found)}\n\n{fault_table(found)}\n"


def share_table(found: list[Judged]) -> str:
    lines = header("of the faults that hurt", "count", "share", "95 %")
    for name, (count, total) in shares(found).items():
        if total:
            share = wilson(count, total)
            lines.append(
                row(name, f"{count} of {total}", f"{count / total:.0%}", f"{share.low:.0%} to {share.high:.0%}")
            )
    return "\n".join(lines)


def fault_table(found: list[Judged]) -> str:
    lines = header(
        "fault", "part", "hurts", "final without responses", "with", "acted at step", "pointed at", "stopped by"
    )
    for one in sorted(found, key=lambda one: one.condition):
        at = "" if one.at is None else str(one.at)
        hurts = "yes" if one.hurts else ""
        figures = f"{one.plain:.0%}", f"{one.final:.0%}"
        lines.append(row(f"`{one.condition}`", one.part, hurts, *figures, at, one.named, one.stopped_by))
    return "\n".join(lines)
