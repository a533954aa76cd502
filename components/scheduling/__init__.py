"""Which prompts come next.

- `base` — the `Schedule` seam
- `entry` — what is declared of a schedule from outside, and the contract of all of them
- `uniform` — every prompt once an epoch, or all but those that are skipped by chance: `greso` by streaks, `forecast` by
  a model of success
- `ads` — Adaptive Data Scheduling: clusters by success, windows at the policy's boundary
- `mopps` — the prompts whose success lies nearest to a target
- `pools` — pools by measured success, and who is let into a draw (`GATES`)
- `checks` — arrays inside a JSON state, and what its fields may hold
- `ranked_clusters` — what `components.clusters` computed, as schedules take it

`SCHEDULES` maps ``schedule.kind`` to a builder; ``kind: python`` names a `ScheduleEntry` from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from components.catalog import Catalog
from components.config import Settings
from components.config.scheduling import (
    AdsSchedule,
    ForecastSchedule,
    GresoSchedule,
    MoppsSchedule,
    PoolsSchedule,
    PythonSchedule,
)
from components.errors import InputError
from components.files import read_jsonl
from components.layout import Layout
from components.scheduling.ads import Ads
from components.scheduling.base import Schedule
from components.scheduling.entry import ScheduleEntry
from components.scheduling.forecast import Forecast
from components.scheduling.greso import Greso
from components.scheduling.mopps import Mopps
from components.scheduling.pools import DifficultyPools
from components.scheduling.uniform import Uniform
from components.types import Prompt

Clusters = Mapping[int, Sequence[Prompt]]
"""Cluster number -> its prompts, easiest first."""


def _by_id(clusters: Clusters) -> list[Prompt]:
    """All prompts, in an order that does not depend on the clusters."""
    return sorted((prompt for members in clusters.values() for prompt in members), key=lambda prompt: prompt.id)


def _enough(clusters: Clusters, settings: Settings) -> list[Prompt]:
    """All prompts, if a draw of distinct ones is possible."""
    prompts = _by_id(clusters)
    if len(prompts) < settings.train.prompts_per_step:
        raise InputError(
            f"a draw takes {settings.train.prompts_per_step} distinct prompts, there are {len(prompts)}",
            where="train.prompts_per_step",
            how="give more training prompts, or lower train.prompts_per_step",
        )
    return prompts


def _thin(settings: Settings) -> bool:
    """Whether a step draws fewer prompts where some are skipped; with dynamic sampling it goes on to a full batch."""
    return settings.rollout.dynamic_sampling is None


SCHEDULES: dict[str, Callable[[Clusters, Settings], Schedule]] = {
    "uniform": lambda clusters, s: Uniform(_by_id(clusters), s.seed),
    "difficulty_pools": lambda clusters, s: DifficultyPools(
        _enough(clusters, s), cast(PoolsSchedule, s.schedule), s.seed
    ),
    "ads": lambda clusters, s: Ads(clusters, cast(AdsSchedule, s.schedule), s.seed),
    "greso": lambda clusters, s: Greso(_by_id(clusters), cast(GresoSchedule, s.schedule), s.seed, thin=_thin(s)),
    "mopps": lambda clusters, s: Mopps(_enough(clusters, s), cast(MoppsSchedule, s.schedule), s.seed),
    "forecast": lambda clusters, s: Forecast(
        _by_id(clusters), cast(ForecastSchedule, s.schedule), s.rollout.group_size, s.seed, thin=_thin(s)
    ),
}
"""``schedule.kind`` -> builds it from clusters and settings whose schedule is of that kind."""
OUTSIDE: Catalog[ScheduleEntry] = Catalog(ScheduleEntry, {})


def build_schedule(clusters: Clusters, settings: Settings) -> Schedule:
    """The schedule that the settings name, over ranked clusters."""
    if isinstance(settings.schedule, PythonSchedule):
        schedule: Schedule = OUTSIDE.choose(settings.schedule)(_by_id(clusters), settings.seed)
        return schedule
    return SCHEDULES[settings.schedule.kind](clusters, settings)


def ranked_clusters(prompts: Sequence[Prompt], layout: Layout) -> Clusters:
    """What the clusters stage wrote, as the schedule wants it."""
    by_id = {prompt.id: prompt for prompt in prompts}
    rows = sorted(read_jsonl(layout.clusters), key=lambda row: (row["cluster"], row["rank"]))
    clusters: dict[int, list[Prompt]] = {}
    for row in rows:
        clusters.setdefault(row["cluster"], []).append(replace(by_id[row["id"]], cluster=row["cluster"]))
    return clusters


__all__ = [
    "SCHEDULES",
    "Ads",
    "Clusters",
    "DifficultyPools",
    "Schedule",
    "ScheduleEntry",
    "Uniform",
    "build_schedule",
    "ranked_clusters",
]
