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
    cells = [("", "pods", "cores", "GiB", "GPUs", f"{currency}/h")]
    cells += [(r.what, str(r.pods), _short(r.cpu), _short(r.memory), str(r.gpus), f"{r.hourly:.2f}") for r in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for what, *figures in cells:
        padded = [figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True)]
        lines.append("  ".join([what.ljust(widths[0]), *padded]))
    once, longest = hours(plan)
    limit = f"at most {_short(once)} h an attempt, {_short(longest)} h in all (deadline, max_restarts)"
    if hourly := rows[-1].hourly:
        cost = [f"{limit}: {hourly * once:.2f} to {hourly * longest:.2f} {currency} at most"]
    else:
        cost = [limit, "no prices are set (launch.kubernetes.prices), so nothing is said of cost"]
    return "\n".join([*lines, "", *cost])


def _short(number: Decimal) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
