"""How many right answers are accepted, and how many wrong ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from components.rewards.base import Refused, Verifier
from components.types import Prompt
from tests.answers.kinds import Kind, forms


class Case(NamedTuple):
    """One answer to one reference."""

    kind: str
    style: str
    reference: str
    answer: str
    text: str
    right: bool


def cases(kinds: Mapping[str, Kind], styles: Mapping[str, str], seed: int, each: int) -> Iterator[Case]:
    """Every form of ``each`` references of every kind, in three styles."""
    rng = random.Random(seed)
    for name, kind in kinds.items():
        for _ in range(each):
            values = kind.draw(rng)
            [reference] = forms(kind.reference, values)
            for right, template in ((True, kind.right), (False, kind.wrong)):
                for form in forms(template, values):
                    for style in rng.sample([*styles], min(3, len(styles))):
                        if form[0] == "$" and "${}$" in styles[style]:
                            continue  # the sign of a formula in lines of its own
                        yield Case(name, style, reference, form, styles[style].format(form), right)


def verdict(verifier: Verifier, reference: str, text: str) -> float | None:
    """1.0, 0.0, or None for unscorable."""
    try:
        return verifier.accuracy(Prompt("p", "?", reference, ""), text)
    except Refused:
        return None
