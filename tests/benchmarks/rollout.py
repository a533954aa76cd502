"""Section `rollout`: tokens a second and peak memory of the embedded engine, `transformers.generate` and TRL.

Random weights, one thread. About one token in ``limit`` ends a row, and only tokens up to it are counted. Speed: all
ways in turns in one process, by processor time. Memory: a process for every way, what its sampling takes above the
loaded model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from tests.benchmarks.micro.cases import SAMPLED, TOY_SAMPLED, Sampled
from tests.benchmarks.micro.figures import MEMORY, SPEED, Sides, figures
from tests.benchmarks.section import Row, Rows, Scale, Section, skipped

SIDES = Sides({"engine": "engine", "generate": "`transformers.generate`", "trl": "TRL"})
REMEMBERED = ("engine", "generate")
"""Ways whose memory is measured; TRL's is that of `transformers.generate`, which it calls."""
CASES: dict[Scale, Mapping[str, Sampled]] = {"full": SAMPLED, "smoke": TOY_SAMPLED}
ROUNDS: dict[Scale, int] = {"full": 5, "smoke": 2}
ENOUGH: dict[Scale, float] = {"full": 6.0, "smoke": 0.0}
"""Seconds of rounds, after which there are no more than those."""


class Rollout(Section):
    title: ClassVar[str] = "Rollout compared with transformers.generate and TRL"

    def cells(self, scale: Scale) -> Sequence[str]:
        found = []
        for case in CASES[scale].values():
            found += [f"{case.name}: {SPEED}", *(f"{case.name}: {MEMORY}{way}" for way in REMEMBERED if case.memory)]
        return found

    def measure(self, cell: str, scale: Scale, folder: Path) -> Row:
        name, _, what = cell.partition(": ")
        case = CASES[scale][name]
        if what != SPEED:
            return memory(case, what.removeprefix(MEMORY))
        return speed(case, list(SIDES.titles), ROUNDS[scale], ENOUGH[scale])

    def figures(self, rows: Rows) -> dict[str, str]:
        return figures(rows, SIDES, [*self.cells("full"), *self.cells("smoke")])


def speed(case: Sampled, ways: Sequence[str], rounds: int, enough: float = 0.0, warm: int = 1) -> Row:
    """These ways in turns.

    Raises:
        ValueError: No row can end, and yet one way wrote other than all of its tokens.
    """
    if find_spec("trl") is None:
        return skipped("TRL is not installed; it is in the dev extra")
    import torch

    from tests.benchmarks.micro.rates import in_turns
    from tests.benchmarks.micro.sampling import way_of

    torch.set_num_threads(1)
    found = in_turns({name: way_of(name, case) for name in ways}, rounds, enough, warm)
    counts = {count for way in found.values() for count in way["tokens"]}
    if case.endless and counts != {case.rows * case.limit}:
        raise ValueError(f"not the same work: {counts} tokens where every way writes {case.rows * case.limit}")
    return {"rounds": found}


def memory(case: Sampled, way: str) -> Row:
    """One way alone. What it loads when it first runs is loaded by a toy before."""
    import torch

    from tests.benchmarks.micro.memory import peak_above
    from tests.benchmarks.micro.sampling import way_of

    torch.set_num_threads(1)
    way_of(way, replace(case, size="toy", prompts=1, group=2, limit=2, vocabulary=64))(0)
    work = way_of(way, case)
    return dict(peak_above(lambda: work(0)))
