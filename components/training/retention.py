"""Which checkpoints of a run are kept."""

from __future__ import annotations

from collections.abc import Sequence

from components.config.training import CheckpointSettings
from components.health.responses import Saved


def rollback_candidates(saved: Sequence[Saved], healthy: int, apart: int) -> list[Saved]:
    """Those that a roll-back may need: the run's beginning, the newest one, the latest ``healthy`` ones that were
    healthy when they were made, and two of these at least ``apart`` steps apart, so that one of them is older than any
    verdict's evidence.
    """
    steps = [one.step for one in saved if one.healthy and one.step]
    spaced: list[int] = []
    for step in steps:
        if not spaced or step - spaced[-1] >= apart:
            spaced.append(step)
    kept = (0, saved[-1].step, *steps[-healthy:], *spaced[-2:])
    return [one for one in saved if one.step in kept]


def retained_checkpoints(saved: Sequence[Saved], settings: CheckpointSettings, *, judged: bool) -> list[Saved]:
    """The newest ones, the healthy ones where health is judged, and the best by dev pass@1 (of equals the older)."""
    last = saved[-settings.keep_last :]
    healthy = [one for one in saved if one.healthy] if judged else []
    if settings.keep_healthy is not None:
        healthy = healthy[max(0, len(healthy) - settings.keep_healthy) :]
    measured = sorted((one for one in saved if one.dev is not None), key=lambda one: -(one.dev or 0.0))
    kept = {one.step for one in (*last, *healthy, *measured[: settings.keep_best])}
    return [one for one in saved if one.step in kept]
