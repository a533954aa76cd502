"""Quantities as Kubernetes writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from components.config.kubernetes import PodSettings
from components.config.quantities import UNITS

GPU = "nvidia.com/gpu"
SMALL = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
FORM = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)(n|u|m|k|Ki|[MGTPE]i?)?")
LARGEST = {"E": Decimal(10) ** 18, "Ei": Decimal(2) ** 60}


def amount(text: object) -> Decimal:
    """A quantity, such as 500m, 64Gi or 1e3."""
    found = FORM.fullmatch(str(text))
    if found is None:
        raise ValueError(f"{text!r} is no quantity of Kubernetes")
    number, unit = found.groups()
    return Decimal(number) * (SMALL | LARGEST | {key: Decimal(value) for key, value in UNITS.items()}).get(
        unit or "", 1
    )


def of_pod(pods: PodSettings) -> dict[str, Decimal]:
    """What one pod of a role is given, by the name of the resource."""
    found = {"cpu": amount(pods.cpu), "memory": amount(pods.memory), "ephemeral-storage": amount(pods.disk)}
    return found | ({GPU: Decimal(pods.gpus)} if pods.gpus else {})


def shown(resource: str, value: Decimal) -> str:
    """An amount for people: bytes in GiB, everything else as it is."""
    if resource.rpartition(".")[2] in ("memory", "storage", "ephemeral-storage"):
        return f"{value / 2**30:.4g} GiB"
    return f"{value:.4g}"


def lacking(there: Mapping[str, Decimal], requested: Mapping[str, Decimal]) -> list[str]:
    """A sentence for what is requested and not there."""
    return [
        f"{name} {shown(name, value)} of {shown(name, there.get(name, Decimal()))}"
        for name, value in requested.items()
        if value > there.get(name, Decimal())
    ]
