"""Generated faults as markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from components.evaluation.statistics import wilson
from tests.benchmarks.health.generated import MECHANISMS
from tests.benchmarks.health.generated.drawing import Half
from tests.benchmarks.health.generated.judged import Judged, judged, shares
from tests.benchmarks.health.grounds import TOY, Ground
from tests.benchmarks.spread import table


def page(results: Path, rules: Path, half: Half, ground: Ground = TOY, *, named: bool = True) -> str:
    """One half of the kinds; with ``named`` every fault by its name, else by part alone."""
    found = judged(results, rules, half, ground)
    if not found:
        return f"Kinds: {half}. No runs yet.\n"
    tables = [f"Kinds: {half}. {len(found)} faults.", share_table(found), part_table(found)]
    if apart := [one for one in found if held_back(one)]:
        tables += [f"Of these held back: {len(apart)} faults.", share_table(apart)]
    if named:
        tables.append(fault_table(found))
    return "\n\n".join(tables) + "\n"


def held_back(fault: Judged) -> bool:
    return MECHANISMS[fault.condition.partition("-")[0]].held_back


def share_table(found: Sequence[Judged]) -> str:
    counted = [(name, count, total, wilson(count, total)) for name, (count, total) in shares(found).items() if total]
    rows = [
        [name, f"{count} of {total}", f"{count / total:.0%}", f"{share.low:.0%} to {share.high:.0%}"]
        for name, count, total, share in counted
    ]
    return table(["of the faults that hurt", "count", "share", "95 %"], rows)


def part_table(found: Sequence[Judged]) -> str:
    """Counts by the part that is broken; of all faults, but for those in the columns after *hurt*."""
    head = ["part", "faults", "made worse", "hurt", "acted on", "named", "well without", "well with", "or stopped"]
    rows = [
        [part, *map(str, _counts([f for f in found if f.part == part]))] for part in sorted({f.part for f in found})
    ]
    return table(head, rows)


def _counts(some: Sequence[Judged]) -> list[int]:
    hurt = [one for one in some if one.hurts]
    return [
        len(some),
        sum(one.worse for one in some),
        len(hurt),
        sum(one.at is not None for one in hurt),
        sum(one.named == one.part for one in hurt),
        sum(one.plain_well for one in hurt),
        sum(one.well for one in hurt),
        sum(one.well or one.stopped_rightly for one in hurt),
    ]


def fault_table(found: Sequence[Judged]) -> str:
    head = ["fault", "part", "hurts", "final without responses", "with", "acted at step", "pointed at", "stopped by"]
    return table(head, [_fault(one) for one in sorted(found, key=lambda one: one.condition)])


def _fault(one: Judged) -> list[str]:
    at, hurts = "" if one.at is None else str(one.at), "yes" if one.hurts else ""
    return [
        f"`{one.condition}`",
        one.part,
        hurts,
        f"{one.plain:.0%}",
        f"{one.final:.0%}",
        at,
        one.named,
        one.stopped_by,
    ]
