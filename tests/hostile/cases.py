"""One command with one bad input, and what must be true of its end."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SECONDS = 20.0
"""A command may take this long to find out that its input is bad."""
MEMORY = 2**30
"""Bytes that a command may take beyond its own code and libraries."""
CODES = (0, 2, 3)
TRACEBACK = "Traceback (most recent call last)"
SHOWN = 2000
"""Characters of an input, and of what was printed, that a failure shows."""


@dataclass(frozen=True)
class Case:
    """One bad input.

    Attributes:
        name: readable, and the only one of its kind.
        arguments: of the command, which runs in an empty folder of a project. ``{}`` stands for the folder,
            ``{champion}``, ``{rejected}`` and ``{challenger}`` for the digests of the project's candidates.
        make: writes files into that folder, and may say what it wrote.
        program: ``evenkeel``, or ``components`` for a stage.
        loads: modules that the command would load, which the server does once.
        needs_registry: the project has a registry.
        shown: the input, as a failure shows it.
    """

    name: str
    arguments: tuple[str, ...]
    make: Callable[[Path], object] | None = None
    program: str = "evenkeel"
    loads: tuple[str, ...] = ()
    needs_registry: bool = False
    shown: object = ""


@dataclass(frozen=True)
class End:
    """How a command ended.

    Attributes:
        code: its exit code; negative: the number of the signal that ended it.
        memory: bytes at its peak, beyond those of a command that has done nothing yet.
        said: what it printed on both outputs.
    """

    code: int
    seconds: float
    memory: int
    said: str
    late: bool
    case: Case
    shown: object
    """What its input was."""

    def faults(self) -> list[str]:
        """What is wrong with it."""
        found = []
        if self.late:
            found.append(f"no end within {SECONDS:g} s")
        elif self.code not in CODES:
            found.append(f"exit code {self.code}")
        if TRACEBACK in self.said:
            found.append("a traceback")
        if self.code and not self.said.strip():
            found.append("no word about why")
        if self.memory > MEMORY:
            found.append(f"{self.memory / 2**20:,.0f} MiB")
        return found


def check(end: End) -> None:
    """Fail with the input and what was printed where the end is not as it must be."""
    if faults := end.faults():
        shown = ascii(end.shown) if isinstance(end.shown, str | bytes) else repr(end.shown)
        pytest.fail(
            f"{end.case.name}: {', '.join(faults)}\n"
            f"  command: {end.case.program} {' '.join(map(ascii, end.case.arguments))}\n"
            f"  input: {_cut(shown)}\n"
            f"  said: {_cut(end.said)}",
            pytrace=False,
        )


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} [...] {text[-SHOWN // 2 :]}"


def chosen(cases: Iterable[Case], quick: int, found: Sequence[str] = ()) -> list[Any]:
    """Parameters of a test: all cases, of which about ``quick`` evenly spread ones are not ``slow``.

    Args:
        found: those that have found a fault, which was corrected; they are not ``slow`` either.
    """
    listed = list(cases)
    names = [case.name for case in listed]
    assert len(set(names)) == len(names), sorted(name for name in set(names) if names.count(name) > 1)
    assert set(found) <= set(names), set(found) - set(names)
    step = len(listed) // quick if quick else 0
    made = []
    for number, case in enumerate(listed):
        at_once = (step and number % step == step // 2) or case.name in found
        marks: list[Any] = [] if at_once else [pytest.mark.slow]
        made.append(pytest.param(case, id=case.name, marks=marks))
    return made


def seeded(*names: object) -> random.Random:
    """Random numbers that are the same every time for the same names."""
    return random.Random(repr(names))


def sample(values: Sequence[Any], count: int, *names: object) -> list[Any]:
    """``count`` of the values, the same every time for the same names."""
    return seeded(*names).sample(values, min(count, len(values)))
