"""The resources that a run requests, and their cost."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from components.config.kubernetes import Prices
from components.config.quantities import amount
from components.launch.kubernetes.names import GPU
from components.launch.kubernetes.plan import RolePlan, RunPlan, requests

GIB = 2**30


class Amount(NamedTuple):
    """Pods, and what all of them together are given: cores, GiB of memory, GPUs, and their price an hour."""

    what: str
    pods: Decimal
    cpu: Decimal
    memory: Decimal
    gpus: Decimal
    hourly: Decimal


def amounts(plan: RunPlan) -> list[Amount]:
    """One for each role, and their sum."""
    rows = [_amount(role, plan.how.prices) for role in plan.roles]
    columns = zip(*(row[1:] for row in rows), strict=True)
    return [*rows, Amount("total", *(sum(column, Decimal()) for column in columns))]


def _amount(role: RolePlan, prices: Prices) -> Amount:
    one = {name: amount(text) * role.count for name, text in requests(role.pods).items()}
    cpu, memory, gpus = one["cpu"], one["memory"] / GIB, one.get(GPU, Decimal())
    hourly = cpu * Decimal(str(prices.cpu)) + memory * Decimal(str(prices.memory)) + gpus * Decimal(str(prices.gpu))
    return Amount(role.name, Decimal(role.count), cpu, memory, gpus, hourly)


def hours(plan: RunPlan) -> tuple[Decimal, Decimal]:
    """Longest time of one attempt, and of all that ``max_restarts`` allows; disruptions come on top."""
    once = Decimal(plan.how.deadline) / 3600
    return once, once * (plan.how.max_restarts + 1)


def table(plan: RunPlan) -> str:
    """Both as text."""
    currency, rows = plan.how.prices.currency, amounts(plan)
    cells = [["", "pods", "cores", "GiB", "GPUs", f"{currency}/h"]]
    cells += [[what, *map(_short, given), f"{hourly:.2f}"] for what, *given, hourly in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join([what.ljust(widths[0]), *map(str.rjust, given, widths[1:])]) for what, *given in cells]
    once, longest = hours(plan)
    limit = f"at most {_short(once)} h an attempt, {_short(longest)} h in all (deadline, max_restarts)"
    if hourly := rows[-1].hourly:
        cost = [f"{limit}: {hourly * once:.2f} to {hourly * longest:.2f} {currency} at most"]
    else:
        cost = [limit, "no prices are set (launch.kubernetes.prices), so nothing is said of cost"]
    return "\n".join([*lines, "", *cost])


def _short(number: Decimal) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
