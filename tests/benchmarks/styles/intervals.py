"""Intervals: bounded, to one side unbounded, unions of two."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from tests.benchmarks.styles.reference import Reference

INFINITY = r"\infty"
FLIPPED = {"[": "(", "(": "[", ")": "]", "]": ")"}


class Interval(NamedTuple):
    """A bracket, two ends, a bracket; an end without a number is infinite."""

    left: str
    low: int | None
    high: int | None
    right: str

    def written(self, comma: str = ",", sized: bool = False) -> str:
        low = f"-{INFINITY}" if self.low is None else str(self.low)
        high = INFINITY if self.high is None else str(self.high)
        size = (r"\left", r"\right") if sized else ("", "")
        return f"{size[0]}{self.left}{low}{comma}{high}{size[1]}{self.right}"

    def flipped(self) -> Interval:
        """The other bracket at a finite end."""
        if self.low is None:
            return self._replace(right=FLIPPED[self.right])
        return self._replace(left=FLIPPED[self.left])

    def moved(self) -> Interval:
        """A finite end one higher."""
        if self.high is None:
            return self._replace(low=(self.low or 0) + 1)
        return self._replace(high=self.high + 1)


def union(parts: Sequence[Interval], comma: str = ",", sized: bool = False) -> str:
    """The parts with cups between them."""
    return r" \cup ".join(part.written(comma, sized) for part in parts)


def interval(rng: random.Random, number: int) -> Reference:
    """Bounded, unbounded and a union in turns."""
    low = rng.randint(-9, 5)
    high = low + rng.randint(1, 9)
    left, right, variant = rng.choice("[("), rng.choice(")]"), number % 3
    below, above = Interval("(", None, high, right), Interval(left, low, None, ")")
    if variant == 0:
        parts = [Interval(left, low, high, right)]
    elif variant == 1:
        parts = [rng.choice([below, above])]
    else:
        parts = [below._replace(high=low), above._replace(low=high)]
    answer = union(parts)
    forms = {
        "same": answer,
        "spaces": union(parts, ", "),
        "leftright": union(parts, ", ", sized=True),
        "tightcup": answer.replace(r" \cup ", r"\cup"),
    }
    if variant == 2:
        forms["reordered"] = union(parts[::-1])
    if INFINITY in answer and rng.random() < 0.5:
        forms["plusinf"] = answer.replace(rf",{INFINITY}", rf",+{INFINITY}")
    return Reference(
        answer=answer,
        forms=forms,
        wrong=(_wrong_bounded, _wrong_unbounded, _wrong_union)[variant](parts),
        question="Find the domain of the function in interval notation.",
        other=union([*parts[:-1], parts[-1].moved()]),
        variable=r"x \in",
    )


def _wrong_bounded(parts: Sequence[Interval]) -> dict[str, str]:
    [part] = parts
    wrong = {
        "open_closed": part.flipped().written(),
        "nearby": part.moved().written(),
        "half": str(part.low),
        "set_instead": rf"\{{{part.low},{part.high}\}}",
        "reversed": part._replace(low=part.high, high=part.low).written(),
    }
    if part.left + part.right in ("[]", "()"):
        wrong["open_closed2"] = part.flipped()._replace(right=FLIPPED[part.right]).written()
    return wrong


def _wrong_unbounded(parts: Sequence[Interval]) -> dict[str, str]:
    [part] = parts
    return {
        "open_closed": part.flipped().written(),
        "nearby": part.moved().written(),
        "half": str(part.high if part.low is None else part.low),
        "set_instead": part.moved().written(", "),
    }


def _wrong_union(parts: Sequence[Interval]) -> dict[str, str]:
    first, last = parts
    return {
        "open_closed": union([first, last.flipped()]),
        "nearby": union([first, last.moved()]),
        "half": first.written(),
        "set_instead": union([first, last.moved()], ", "),
        "cap": union(parts).replace(r"\cup", r"\cap"),
        "missing": last.written(),
    }
