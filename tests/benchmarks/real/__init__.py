"""Section `real`: sampling, one update and the time to an accuracy on a real model, against transformers and TRL.

- `model` — where the model lies
- `cases` — what is sampled and updated
- `products` — the task that is learned (`products.yaml`, `products.jsonl`)
- `aims` — tables, and what is aimed at

SmolLM2-135M-Instruct (`make model`), one thread, processor time. Both sides of a comparison take turns in one process;
peak memory is that of a process for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from tests.benchmarks import learner, rollout
from tests.benchmarks.micro.cases import Sampled, Updated
from tests.benchmarks.micro.figures import MEMORY, SPEED
from tests.benchmarks.real import aims
from tests.benchmarks.real.cases import REMEMBERED, RUNS, SAMPLED, UPDATED
from tests.benchmarks.real.model import missing
from tests.benchmarks.section import Row, Rows, Scale, Section, skipped

ROUNDS: dict[Scale, int] = {"full": 3, "smoke": 2}
WARM = 0
"""Rounds that do not count. A round takes minutes, what is done once a second or two: the median is not one of it."""


class Real(Section):
    title: ClassVar[str] = "A real model, against transformers and TRL"
    limit: ClassVar[float] = 3600.0

    def cells(self, scale: Scale) -> Sequence[str]:
        found = []
        for sampled in SAMPLED[scale].values():
            ways = list(aims.SAMPLERS.titles) if sampled.name == REMEMBERED else []
            found += [f"{sampled.name}: {SPEED}", *(f"{sampled.name}: {MEMORY}{way}" for way in ways)]
        for updated in UPDATED[scale].values():
            ways = list(aims.UPDATERS[updated.precision].titles)[:2] if updated.memory else []
            found += [f"{updated.name}: {SPEED}", *(f"{updated.name}: {MEMORY}{way}" for way in ways)]
        return [*found, *RUNS[scale]]

    def measure(self, cell: str, scale: Scale, folder: Path) -> Row:
        if scale == "full" and (why := missing()):
            return skipped(why)
        if find_spec("trl") is None:
            return skipped("TRL is not installed; it is in the dev extra")
        name, _, what = cell.partition(": ")
        if name in SAMPLED[scale]:
            return _sampling(SAMPLED[scale][name], what, ROUNDS[scale])
        if name in UPDATED[scale]:
            return _update(UPDATED[scale][name], what, ROUNDS[scale])
        return _training(cell, scale, folder)

    def figures(self, rows: Rows) -> dict[str, str]:
        return aims.figures(rows)


def _sampling(case: Sampled, what: str, rounds: int) -> Row:
    if what != SPEED:
        return rollout.memory(case, what.removeprefix(MEMORY))
    return rollout.speed(case, list(aims.SAMPLERS.titles), rounds, warm=WARM)


def _update(case: Updated, what: str, rounds: int) -> Row:
    if what != SPEED:
        return learner.memory(case, what.removeprefix(MEMORY))
    return learner.speed(case, list(aims.UPDATERS[case.precision].titles), rounds, warm=WARM)


def _training(cell: str, scale: Scale, folder: Path) -> Row:
    import torch

    from tests.benchmarks.accuracy import arms
    from tests.benchmarks.real.products import PRODUCTS

    torch.set_num_threads(1)
    return arms.measure(PRODUCTS[scale], cell, folder)
