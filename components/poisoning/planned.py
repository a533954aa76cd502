"""How the planned gradient steps would be spread over the training prompts."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from components.config.admission import AdmissionSettings
from components.config.scheduling import (
    AdsSchedule,
    ForecastSchedule,
    GradientGate,
    GresoSchedule,
    MoppsSchedule,
    PoolsSchedule,
    Schedule,
)
from components.config.training import TrainSettings
from components.errors import InputError


@dataclass(frozen=True, slots=True)
class Planned:
    """Distinct prompts of a step, and how much of all planned draws one prompt gets.

    ``largest_share`` is that of an even spread, rounded up to whole draws: no schedule can do with less.
    ``boundary_share`` is what the schedule gives a prompt that stays at the policy's boundary for the whole run, while
    it draws its clusters or pools alike (see `boundary_rate`). Neither is a bound: where ADS comes to favour a
    cluster its prompts are drawn more often, and refills draw again within a step. A prompt that is drawn once has no
    share to speak of.
    """

    prompts: int
    draws: int
    distinct: int
    largest_share: float
    boundary_share: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def planned(prompts: int, train: TrainSettings, schedule: Schedule, clusters: int) -> Planned:
    """What ``train.steps`` steps of ``train.prompts_per_step`` make of that many prompts, in that many clusters."""
    draws = train.steps * train.prompts_per_step
    even = -(-draws // prompts) if prompts else 0
    step_share = train.prompts_per_step / prompts if prompts else 0.0
    favoured = math.ceil(train.steps * boundary_rate(schedule, clusters, step_share))
    shares = [times / draws if times > 1 else 0.0 for times in (even, favoured)]
    return Planned(prompts, draws, min(prompts, train.prompts_per_step), *shares)


def boundary_rate(schedule: Schedule, clusters: int, step_share: float) -> float:
    """Share of the steps in which a prompt at the boundary is drawn; a step draws ``step_share`` of all prompts.

    ADS keeps it in the window, which is drawn whenever its cluster is; pools can draw it again after its rest.
    Schedules that skip by chance draw it once an epoch, which is the shorter the more they skip; MoPPS whenever it
    considers it.
    """
    match schedule:
        case AdsSchedule(active=active):
            return min(1.0, active / clusters)
        case PoolsSchedule(gate=GradientGate(rest=rest)):
            return 1 / (rest + 1)
        case PoolsSchedule():
            return 1.0
        case GresoSchedule(least=least) | ForecastSchedule(explore=least):
            return min(1.0, step_share / least)
        case MoppsSchedule(candidates=candidates):
            return min(1.0, step_share * candidates)
    return 0.0


def refuse_few(plan: Planned, limits: AdmissionSettings) -> None:
    """Raise InputError for training on so few prompts that one of them can turn the policy (2606.10931)."""
    if plan.distinct < limits.min_distinct:
        raise InputError(
            f"a step has {plan.distinct} distinct prompts, admission.min_distinct is {limits.min_distinct}",
            where="train.prompts_per_step" if plan.prompts >= limits.min_distinct else "the training split",
            how="train on more prompts a step; data.splits.train and the source decide how many there are",
        )
    allowed = f"admission.max_prompt_share allows {limits.max_prompt_share:.1%}"
    if plan.largest_share > limits.max_prompt_share:
        raise InputError(
            f"one prompt has {plan.largest_share:.1%} of the {plan.draws:,} planned draws, {allowed}",
            where=f"the training split, of {plan.prompts} prompts",
            how="give the training split more prompts, or train for fewer steps",
        )
    if plan.boundary_share > limits.max_prompt_share:
        raise InputError(
            f"the schedule gives one prompt at the policy's boundary {plan.boundary_share:.1%} of the {plan.draws:,} "
            f"planned draws, {allowed}",
            where="schedule",
            how="more data do not help here: raise train.prompts_per_step (under ADS with schedule.window), or let "
            "fewer steps draw it: a higher clusters.k under ADS, a longer rest of the gate under pools",
        )
