"""The planted holes. Each was written before it was tried whether the audit finds it.

Half of them, ``held_out``, played no part in the making of the audit's probes; most of those are what public graders do
or did (Math-Verify, verl, the graders of MATH and of Qwen2.5-Math, TinyZero), or what issues of such projects report.
Those of `other_author` are by an author who had read neither the probes nor these holes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from components.types import Prompt

Half = Literal["design", "held_out", "other_author"]
Effect = Literal["accepts", "refuses", "hangs"]


class Hole(NamedTuple):
    """A fault of a verifier: where ``fires`` is true of a question and a completion, it accepts a wrong answer, refuses
    a right one, or does not come to an end."""

    name: str
    half: Half
    fires: Callable[[Prompt, str], bool]
    effect: Effect = "accepts"


def all_holes() -> dict[str, tuple[Hole, ...]]:
    """By the kind of the answers of the verifier in which they are planted."""
    from tests.benchmarks.audit import expressions, numbers, other_author, programs, texts

    return {
        "number": numbers.HOLES + other_author.NUMBERS,
        "expression": expressions.HOLES + other_author.EXPRESSIONS,
        "text": texts.TEXT + other_author.TEXTS,
        "choice": texts.CHOICE + other_author.CHOICES,
        "json": texts.JSON,
        "calculation": texts.CALCULATION,
        "code": programs.HOLES,
        "skeleton": texts.SKELETON,
    }
