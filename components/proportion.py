"""How much the stages before `train` sample from the policy: in proportion to what training will sample.

A setting of a number is taken as it is; ``auto`` follows from the run, as below.
"""

from __future__ import annotations

from typing import NamedTuple

from components.config import Settings
from components.config.scheduling import AdsSchedule

SHARE = 0.05
"""Of the completions that training samples: what each of the label audit and triage may sample."""
FEWEST, MOST = 32, 128
"""Prompts. With fewer neither verdict is reliable; with more, triage's hardly improves."""
SAMPLES = 8
"""Completions of a prompt, where a group of training has fewer."""
MEASURED = 4
"""Completions of a prompt whose entropy triage computes: that of more would be the same, and costs a pass over them."""
SPARE = 4
"""Times the prompts that the windows of all clusters hold, so that few clusters of k-means are too small for one."""


class SampleSize(NamedTuple):
    """At most this many prompts, and completions of each."""

    prompts: int
    samples: int


def draws(settings: Settings) -> int:
    """Prompts that training draws, repeats counted, without what dynamic sampling refills."""
    return settings.train.steps * settings.train.prompts_per_step


def triage_sample(settings: Settings) -> SampleSize:
    """What triage measures; answers that the label audit has sampled count."""
    prompts, each = settings.triage.prompts, _samples(settings)
    affordable = _affordable(settings, each)
    return SampleSize(min(MOST, affordable) if prompts == "auto" else prompts, each)


def audit_sample(settings: Settings) -> SampleSize:
    """What the label audit samples of every prompt; more only of those whose verdict that leaves open."""
    each = min(settings.admission.samples, _samples(settings))
    affordable = _affordable(settings, each)
    return SampleSize(affordable if settings.admission.prompts == "auto" else settings.admission.prompts, each)


def ranked_prompts(settings: Settings) -> int | None:
    """Prompts that are embedded, clustered and ranked; None where the schedule reads no cluster.

    A visit of a cluster draws a window of prompts and moves it by as many at most. So a cluster that is visited in
    every step, which is the most, needs ``steps x window`` prompts and, as all clusters are of some like size, the run
    ``k`` times as many. Where refills draw more than that, the window of such a cluster stays at its end.
    """
    if not isinstance(settings.schedule, AdsSchedule):
        return None
    windows = settings.clusters.k * settings.schedule.window
    reached = (settings.train.steps + SPARE) * windows
    return reached if settings.clusters.prompts == "auto" else settings.clusters.prompts


def _samples(settings: Settings) -> int:
    samples = settings.triage.samples
    return max(SAMPLES, settings.rollout.group_size) if samples == "auto" else samples


def _affordable(settings: Settings, each: int) -> int:
    return max(FEWEST, int(SHARE * draws(settings) * settings.rollout.group_size / each))
