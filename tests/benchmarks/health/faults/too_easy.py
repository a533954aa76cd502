"""Prompts that are solved.

In the field: a data set that the checkpoint has already mastered; nearly every group is all right.
"""

from __future__ import annotations

from collections.abc import Sequence

from components.types import Prompt
from tests.benchmarks.health.faults.base import Fault
from tests.benchmarks.health.faults.too_hard import mostly


class TooEasy(Fault):
    """Nine of ten training prompts are comparisons of two numbers, which the teacher never got wrong."""

    def prompts(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        return mostly(prompts, self.seed, level=2, families=("comparison",))
