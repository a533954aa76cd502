"""How the planned gradient steps would be spread over the training prompts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from components.config.admission import AdmissionSettings
from components.config.training import TrainSettings
from components.errors import InputError


@dataclass(frozen=True, slots=True)
class Planned:
    """Distinct prompts of a step, and the largest share of all draws that one prompt gets.

    Both schedules draw a prompt at most once a step and every prompt about equally often, so that the share is that of
    an even spread, rounded up to whole draws. A prompt that is drawn once has no share to speak of.
    """

    prompts: int
    draws: int
    distinct: int
    largest_share: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def planned(prompts: int, train: TrainSettings) -> Planned:
    """What ``train.steps`` steps of ``train.prompts_per_step`` make of that many prompts."""
    draws = train.steps * train.prompts_per_step
    most = -(-draws // prompts) if prompts else 0
    return Planned(prompts, draws, min(prompts, train.prompts_per_step), most / draws if most > 1 else 0.0)


def refuse_few(plan: Planned, limits: AdmissionSettings) -> None:
    """Raise InputError for training on so few prompts that one of them can turn the policy (2606.10931)."""
    if plan.distinct < limits.min_distinct:
        raise InputError(
            f"a step has {plan.distinct} distinct prompts, admission.min_distinct asks for {limits.min_distinct}",
            where="train.prompts_per_step" if plan.prompts >= limits.min_distinct else "the training split",
            how="train on more prompts a step; data.splits.train and the source decide how many there are",
        )
    if plan.largest_share > limits.max_prompt_share:
        raise InputError(
            f"one prompt has {plan.largest_share:.1%} of the {plan.draws:,} planned draws, "
            f"admission.max_prompt_share allows {limits.max_prompt_share:.1%}",
            where=f"the training split, of {plan.prompts} prompts",
            how="give the training split more prompts, or train for fewer steps",
        )
