"""Prompts beyond the policy.

In the field: a data mix that is too hard for the checkpoint; nearly every group is all wrong and nothing is learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from components.config.tasks import ArithmeticSource, Family
from components.tasks.arithmetic import generate
from components.types import Prompt
from tests.benchmarks.health.faults.base import Fault

SHARE = 0.9


class TooHard(Fault):
    """Nine of ten training prompts are of the highest level of arithmetic; the policy was taught the lowest two."""

    def prompts(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        return mostly(prompts, self.seed, level=5, families=("addition", "subtraction", "multiplication"))


def mostly(prompts: Sequence[Prompt], seed: int, level: int, families: tuple[Family, ...]) -> list[Prompt]:
    """The prompts, the first `SHARE` of them replaced by distinct ones of one level; the ids stay."""
    count = round(SHARE * len(prompts))
    source = ArithmeticSource(families=families, levels=level, rows=level * (count + 16), carry_free=1.0)
    others = islice((p for p in generate(source, seed) if p.difficulty == level), count)
    replaced = [replace(other, id=prompt.id) for other, prompt in zip(others, prompts, strict=False)]
    return [*replaced, *prompts[len(replaced) :]]
