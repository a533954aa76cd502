"""Which prompts come next.

- `base` — the `Schedule` seam
- `uniform` — every prompt once an epoch
- `ads`, `window` — Adaptive Data Scheduling: clusters by success, windows at the policy's boundary
- `clustering` — the offline stage: embeddings, k-means, difficulty

`SCHEDULES` maps ``schedule.kind`` to a builder.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from components.config import Settings
from components.scheduling.ads import Ads
from components.scheduling.base import Schedule
from components.scheduling.uniform import Uniform
from components.types import Prompt

Clusters = Mapping[int, Sequence[Prompt]]
"""Cluster number -> its prompts, easiest first."""


def _uniform(clusters: Clusters, settings: Settings) -> Schedule:
    prompts = sorted((prompt for members in clusters.values() for prompt in members), key=lambda prompt: prompt.id)
    return Uniform(prompts, settings.seed)


def _ads(clusters: Clusters, settings: Settings) -> Schedule:
    schedule: Any = settings.schedule
    return Ads(clusters, schedule, settings.seed)


SCHEDULES: dict[str, Callable[[Clusters, Settings], Schedule]] = {"uniform": _uniform, "ads": _ads}


def build_schedule(clusters: Clusters, settings: Settings) -> Schedule:
    """The schedule that the settings name, over ranked clusters."""
    return SCHEDULES[settings.schedule.kind](clusters, settings)


__all__ = ["SCHEDULES", "Ads", "Clusters", "Schedule", "Uniform", "build_schedule"]
