"""Section `learner`: one whole update of our learner compared with the same update of TRL's `GRPOTrainer`.

Random weights in fp32, one thread, ragged groups; see `micro.updating` for what is the same on both sides. A figure
counts only where loss and norm of the gradient were the same, update by update. Speed: both in turns in one process, by
processor time. Memory: a process for each, what two updates take above the loaded model, with gradients and moments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from tests.benchmarks.micro.agreement import apart
from tests.benchmarks.micro.cases import TOY_UPDATED, UPDATED, Updated
from tests.benchmarks.micro.figures import MEMORY, SPEED, Sides, figures
from tests.benchmarks.section import Row, Rows, Scale, Section, skipped

SIDES = Sides({"ours": "learner", "trl": "TRL"})
LOGITS = Sides({"ours": "in pieces (default)", "ours whole": "all at once", "trl": "TRL"})
"""Of the cases whose logits do not fit into one piece."""
CASES: dict[Scale, Mapping[str, Updated]] = {"full": UPDATED, "smoke": TOY_UPDATED}
ROUNDS: dict[Scale, int] = {"full": 5, "smoke": 2}
ENOUGH: dict[Scale, float] = {"full": 6.0, "smoke": 0.0}
"""Seconds of rounds, after which there are no more than those."""
TOLERANCE, COARSE = 2e-3, 5e-2
"""Of loss and norm, relative. What is left is rounding: in the precision of both, and what AdamW makes of it."""
SAME: Mapping[str, tuple[str, int | None, float]] = {
    "ours": ("trl", None, TOLERANCE),
    "ours whole": ("trl", None, TOLERANCE),
    "ours bf16": ("trl bf16", 1, COARSE),
}
"""Ways, those that they have to agree with, in how many updates, and how closely. In bf16 the gradients of one update
differ in their last bits, and AdamW's first steps, which follow the sign, lead elsewhere."""


class Learner(Section):
    title: ClassVar[str] = "Learner compared with TRL"

    def cells(self, scale: Scale) -> Sequence[str]:
        found = []
        for case in CASES[scale].values():
            remembered = ways(case) if scale == "full" else ways(case)[:1]
            found += [f"{case.name}: {SPEED}", *(f"{case.name}: {MEMORY}{way}" for way in remembered if case.memory)]
        return found

    def measure(self, cell: str, scale: Scale, folder: Path) -> Row:
        if find_spec("trl") is None:
            return skipped("TRL is not installed; it is in the dev extra")
        name, _, what = cell.partition(": ")
        case = CASES[scale][name]
        if what != SPEED:
            return memory(case, what.removeprefix(MEMORY))
        return speed(case, ways(case), ROUNDS[scale], ENOUGH[scale])

    def figures(self, rows: Rows) -> dict[str, str]:
        cells = [*self.cells("full"), *self.cells("smoke")]
        large = {case.name for cases in CASES.values() for case in cases.values() if case.whole}
        pieces = figures(rows, LOGITS, [cell for cell in cells if cell.partition(": ")[0] in large])
        return {f"logits_{name}": text for name, text in pieces.items()} | figures(rows, SIDES, cells)


def ways(case: Updated) -> list[str]:
    """What is measured for a case; logits all at once only where that is not the default anyway."""
    return [way for way in LOGITS.titles if case.whole or way != "ours whole"]


def speed(case: Updated, ways: Sequence[str], rounds: int, enough: float = 0.0, warm: int = 1) -> Row:
    """These ways in turns, each on its own copy of the weights.

    Raises:
        ValueError: They did not make the same updates.
    """
    import torch

    from tests.benchmarks.micro.rates import in_turns
    from tests.benchmarks.micro.updating import updating

    torch.set_num_threads(1)
    sides = {name: updating(name, case) for name in ways}
    found = in_turns({name: side.way for name, side in sides.items()}, rounds, enough, warm)
    apart_by = [
        apart(sides[one].made[:updates], sides[other].made[:updates], tolerance)
        for one, (other, updates, tolerance) in SAME.items()
        if {one, other} <= {*sides}
    ]
    loss, norm = sides["trl"].made[0]
    return {"rounds": found, "apart": max(apart_by), "loss": loss, "grad_norm": norm}


def memory(case: Updated, way: str) -> Row:
    """One way alone, two updates: the second has AdamW's moments. What its first run loads, a toy has loaded before."""
    import torch

    from tests.benchmarks.micro.memory import peak_above
    from tests.benchmarks.micro.updating import updating

    torch.set_num_threads(1)
    updating(way, replace(case, size="toy", prompts=1, group=2, length=8, vocabulary=64)).way(0)
    work = updating(way, case).way
    return dict(peak_above(lambda: [work(number) for number in range(2)]))
