"""The verdicts on one seed's cases as one row of the result file: counts, no texts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from tests.benchmarks.section import Row
from tests.benchmarks.styles.judging import Judged

STYLE = ("verifier", "marker", "style", "held_back", "right")
FORM = ("kind", "verifier", "right", "form")
UNEXPECTED = ("verifier", "marker", "kind", "style", "form", "right")
NUMBERS = ("cases", "accepted", "unscorable")
"""What is counted of each group; the others are refused."""


def counted(seed: int, judged: Sequence[Judged]) -> Row:
    """``styles`` has an object for every group of `STYLE`, ``forms`` the numbers of every group of `FORM` in objects in
    objects, ``unexpected`` an object for every group of `UNEXPECTED` with its ``outcome`` and its ``cases``."""
    styles = [named | dict(zip(NUMBERS, numbers, strict=True)) for named, numbers in _groups(judged, STYLE)]
    forms: dict[str, Any] = {}
    for named, numbers in _groups(judged, FORM):
        right = "right" if named["right"] else "wrong"
        of_verifier = forms.setdefault(named["kind"], {}).setdefault(named["verifier"], {})
        of_verifier.setdefault(right, {})[named["form"]] = numbers
    others = Counter((*attrgetter(*UNEXPECTED)(one.case), one.outcome) for one in judged if one.unexpected)
    names = (*UNEXPECTED, "outcome")
    unexpected = [dict(zip(names, group, strict=True)) | {"cases": cases} for group, cases in others.items()]
    return {"seed": seed, "styles": styles, "forms": forms, "unexpected": unexpected}


def _groups(judged: Iterable[Judged], names: Sequence[str]) -> list[tuple[Row, list[int]]]:
    """The values of these fields, and the `NUMBERS` of the cases that share them."""
    found: defaultdict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0] * len(NUMBERS))
    for one in judged:
        numbers = found[attrgetter(*names)(one.case)]
        for place, counts in enumerate((True, one.outcome == "accepted", one.outcome == "unscorable")):
            numbers[place] += counts
    return [(dict(zip(names, group, strict=True)), numbers) for group, numbers in found.items()]
