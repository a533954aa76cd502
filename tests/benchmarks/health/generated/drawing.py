"""Which faults a trial consists of, and which of them rules may be designed on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from components.errors import InputError
from components.seeds import derive
from tests.benchmarks.health.generated import MECHANISMS, Generated
from tests.benchmarks.health.generated.forms import Form

Half = Literal["seen", "unseen"]


def half_of(mechanism: str) -> Half:
    """Halves are of kinds: what is reported on was not there when rules were designed."""
    if mechanism in MECHANISMS and MECHANISMS[mechanism].held_back:
        return "unseen"
    return "seen" if derive(0, "half", mechanism) % 2 == 0 else "unseen"


def conditions(half: Half | None = None) -> Iterator[str]:
    """The names of all faults, ``mechanism-time-scope-size``, in an order that no mechanism leads."""
    names = [
        f"{name}-{time}-{scope}-{size:g}"
        for name, kind in MECHANISMS.items()
        if half is None or half_of(name) == half
        for time in kind.times
        for scope in kind.scopes
        for size in kind.sizes
    ]
    yield from sorted(names, key=lambda name: derive(0, "order", name))


def fault_of(condition: str, seed: int) -> Generated:
    """The fault of a name.

    Raises:
        InputError: there is no such fault.
    """
    if condition not in set(conditions()):
        raise InputError(f"no fault {condition!r}", how="names are those of tests.benchmarks.health.generated.drawing")
    name, time, scope, size = condition.split("-", 3)
    return MECHANISMS[name](seed, Form(time, scope), float(size))  # type: ignore[arg-type]
