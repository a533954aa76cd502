"""Amounts of processor and memory as Kubernetes writes them."""

from __future__ import annotations

import re
from decimal import Decimal

CPU = r"^([1-9][0-9]{0,11}m|[1-9][0-9]{0,8}(\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9]0*)$"
"""Cores, such as 2, 0.5 or 500m; more than none."""
BYTES = r"^[1-9][0-9]{0,14}(\.[0-9]{1,15})?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$"
"""Bytes, such as 512Mi or 64Gi; more than none."""
FORM = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)(n|u|m|k|Ki|[MGTPE]i?)?")
"""What a cluster may write, of anything."""
FACTORS = (
    {None: Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
    | {f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)}
    | {unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)}
)
"""By how much units multiply."""


def amount(text: object) -> Decimal:
    """What a quantity comes to: cores, bytes, or a number of something else.

    Raises:
        ValueError: it is no quantity.
    """
    found = FORM.fullmatch(str(text))
    if found is None:
        raise ValueError(f"{text!r} is no quantity of Kubernetes")
    return Decimal(found[1]) * FACTORS[found[2]]


def size(text: str) -> int:
    """Bytes that a quantity of memory comes to."""
    return int(amount(text))
