"""Amounts of processor and memory as Kubernetes writes them."""

from __future__ import annotations

from decimal import Decimal

CPU = r"^([1-9][0-9]{0,11}m|[1-9][0-9]{0,8}(\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9]0*)$"
"""Cores, such as 2, 0.5 or 500m; more than none."""
BYTES = r"^[1-9][0-9]{0,14}(\.[0-9]{1,15})?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$"
"""Bytes, such as 512Mi or 64Gi; more than none."""
UNITS = {f"{unit}i": 1024**power for power, unit in enumerate("KMGTP", 1)} | {
    unit: 1000**power for power, unit in enumerate("kMGTP", 1)
}


def cores(text: str) -> Decimal:
    """Cores that a quantity of processor comes to."""
    return Decimal(text.removesuffix("m")) / 1000 if text.endswith("m") else Decimal(text)


def size(text: str) -> int:
    """Bytes that a quantity of memory comes to."""
    unit = text.lstrip("0123456789.")
    return int(Decimal(text.removesuffix(unit)) * UNITS.get(unit, 1))
