"""How well the success model forecasts which groups are mixed, on the draws of another schedule.

Every forecast is made before the draw that it is about. It is compared with what was last measured of the prompt (a
group is mixed if its last one was), and with the recent share of mixed groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from components.config.scheduling import ForecastSchedule
from components.scheduling import Schedule
from components.scheduling.forecast import SuccessModel, kind_of, mixed
from components.types import Group
from tests.benchmarks.health.faults.base import AroundSchedule

BINS = 5
SHARE_MEMORY = 0.9
Summary = Mapping[str, list[float]]


class Watched(AroundSchedule):
    """A schedule whose outcomes are forecast as well; it draws as before."""

    def __init__(self, inner: Schedule, size: int) -> None:
        super().__init__(inner)
        self._size, self._draw, self._share = size, 0, 0.5
        self._model = SuccessModel(
            [kind_of(prompt) for prompt in inner.prompts], ForecastSchedule(kind="forecast").memory
        )
        self._where = {prompt.id: place for place, prompt in enumerate(inner.prompts)}
        self._last = np.full(len(inner.prompts), np.nan)
        self.forecasts: list[tuple[float, float, float, float]] = []
        """Chance by the model, by the last measurement, by the recent share; and whether the group was mixed."""

    def observe(self, groups: Sequence[Group]) -> None:
        super().observe(groups)
        whole = [group for group in groups if len(group.accuracies) == self._size]
        places = np.array([self._where[group.prompt.id] for group in whole], int)
        right = np.array([sum(group.accuracies) for group in whole])
        outcome = ((right > 0) & (right < self._size)).astype(float)
        last = np.where(np.isnan(self._last[places]), self._share, self._last[places])
        chance = mixed(*self._model.posterior(places, self._draw), self._size)
        share = np.full(len(whole), self._share)
        self.forecasts += [tuple(row) for row in np.stack([chance, last, share, outcome], 1).tolist()]
        self._model.note(places, right, self._size - right, self._draw)
        self._last[places] = outcome
        if whole:
            self._share = SHARE_MEMORY * self._share + (1 - SHARE_MEMORY) * float(outcome.mean())
        self._draw += 1

    def summary(self) -> Summary:
        """Groups, the Brier scores of the three, and for each bin of the model's forecast ``[groups, mean, mixed]``."""
        rows = np.array(self.forecasts).reshape(-1, 4)
        scores = ((rows[:, :3] - rows[:, 3:]) ** 2).mean(0).tolist()
        bins = np.minimum((rows[:, 0] * BINS).astype(int), BINS - 1)
        found: dict[str, list[float]] = {"brier": [float(len(rows)), *scores]}
        for number in range(BINS):
            mine = rows[bins == number]
            found[f"bin_{number}"] = [
                float(len(mine)),
                *(mine[:, [0, 3]].mean(0).tolist() if len(mine) else [0.0, 0.0]),
            ]
        return found


def tables(by_task: Mapping[str, Sequence[Summary]]) -> str:
    """Markdown, a line a task: Brier scores over all of its groups, and how far forecasts hold, bin by bin."""
    heads = [f"{number / BINS:.0%} to {(number + 1) / BINS:.0%}" for number in range(BINS)]
    lines = ["| task | groups | forecast | last measured | recent share | " + " | ".join(heads) + " |"]
    lines.append("|---" * (5 + BINS) + "|")
    for task, summaries in by_task.items():
        scores = _merged([summary["brier"] for summary in summaries])
        cells = [f"{scores[0]:,.0f}", *(f"{score:.3f}" for score in scores[1:])]
        for number in range(BINS):
            count, forecast, found = _merged([summary[f"bin_{number}"] for summary in summaries])
            cells.append(f"{forecast:.0%}: {found:.0%} of {count:,.0f}" if count else "-")
        lines.append(f"| {task} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _merged(parts: Sequence[Sequence[float]]) -> list[float]:
    """The sum of the counts, and the means weighted by them."""
    rows = np.array(parts)
    total = rows[:, 0].sum()
    return [float(total), *((rows[:, :1] * rows[:, 1:]).sum(0) / max(total, 1)).tolist()]
