"""The verifier `math` against math-verify, a judge by others: what that one rightly accepts, ours accepts.

math-verify accepts some that are wrong (numbers side by side, other bases, the last side of any equation, a point for a
set); these are left out on purpose.
"""

from __future__ import annotations

import logging
from collections import Counter
from functools import cache

import pytest
from math_verify import parse, verify

from components.rewards.symbolic import MathVerifier
from tests.answers.kinds import KINDS
from tests.answers.measure import Case, cases, verdict

Judged = tuple[Case, bool, float | None]


@pytest.fixture(scope="module")
def judged() -> list[Judged]:
    """One reference of every kind in every form, with the verdicts of math-verify and of `math`."""
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    ours, found = MathVerifier(None, 6, "strip", 400), []
    read = cache(lambda text: parse(rf"\boxed{{{text}}}", parsing_timeout=None))  # every reference has many answers
    for case in cases(KINDS, {"box": r"\boxed{{{}}}"}, seed=3, each=1):
        theirs = verify(read(case.reference), read(case.answer), timeout_seconds=None)
        found.append((case, theirs, verdict(ours, case.reference, case.text)))
    print("\nright, math-verify, math:", Counter((case.right, theirs, own) for case, theirs, own in found))
    return found


def test_what_math_verify_rightly_accepts_is_accepted(judged: list[Judged]) -> None:
    agreed = [own for case, theirs, own in judged if case.right and theirs]
    assert len(agreed) > 80 and set(agreed) == {1.0}


def test_what_it_accepts_wrongly_is_not(judged: list[Judged]) -> None:
    differing = {case.answer: own for case, theirs, own in judged if theirs and not case.right}
    assert len(differing) > 5 and 1.0 not in differing.values()
