"""The resources that a run requests, and their cost."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from components.config.kubernetes import PodSettings, Prices
from components.config.quantities import cores, size
from components.launch.kubernetes.plan import RunPlan

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Amount:
    """Pods, and what all of them together are given: cores, GiB of memory, GPUs, and their price an hour."""

    what: str
    pods: int
    cpu: Decimal
    memory: Decimal
    gpus: int
    hourly: Decimal


def amounts(plan: RunPlan) -> list[Amount]:
    """One for each role, and their sum."""
    rows = [_amount(role.name, role.count, role.pods, plan.how.prices) for role in plan.roles]
    total = Amount(
        "total",
        sum(row.pods for row in rows),
        sum((row.cpu for row in rows), Decimal()),
        sum((row.memory for row in rows), Decimal()),
        sum(row.gpus for row in rows),
        sum((row.hourly for row in rows), Decimal()),
    )
    return [*rows, total]


def _amount(what: str, pods: int, one: PodSettings, prices: Prices) -> Amount:
    cpu, memory, gpus = pods * cores(one.cpu), Decimal(pods * size(one.memory)) / GIB, pods * one.gpus
    hourly = cpu * Decimal(str(prices.cpu)) + memory * Decimal(str(prices.memory)) + gpus * Decimal(str(prices.gpu))
    return Amount(what, pods, cpu, memory, gpus, hourly)


def hours(plan: RunPlan) -> tuple[Decimal, Decimal]:
    """Longest time of one attempt, and of all that ``max_restarts`` allows; disruptions come on top."""
    once = Decimal(plan.how.deadline) / 3600
    return once, once * (plan.how.max_restarts + 1)


def table(plan: RunPlan) -> str:
    """Both as text."""
    currency, rows = plan.how.prices.currency, amounts(plan)
    head = ("", "pods", "cores", "GiB", "GPUs", f"{currency}/h")
    cells = [head, *((r.what, r.pods, _short(r.cpu), _short(r.memory), r.gpus, f"{r.hourly:.2f}") for r in rows)]
    widths = [max(len(str(row[i])) for row in cells) for i in range(len(head))]
    lines = [
        "  ".join(_pad(str(cell), width, i) for i, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in cells
    ]
    once, longest = hours(plan)
    hourly = rows[-1].hourly
    lines.append("")
    lines.append(f"at most {_short(once)} h an attempt, {_short(longest)} h in all (deadline, max_restarts)")
    if hourly:
        lines[-1] += f": {hourly * once:.2f} to {hourly * longest:.2f} {currency} at most"
    else:
        lines.append("no prices are set (launch.kubernetes.prices), so nothing is said of cost")
    return "\n".join(lines)


def _pad(text: str, width: int, column: int) -> str:
    return text.ljust(width) if column == 0 else text.rjust(width)


def _short(number: Decimal) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
