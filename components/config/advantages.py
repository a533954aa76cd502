"""How rewards become advantages. Formulas and sources are in `components.objectives.advantages`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from components.config.base import Section
from components.config.extensions import PythonEntry
from components.config.ppo import GaeAdvantage

Deviation = Literal["population", "unbiased"]
"""Standard deviation over n or over n - 1; at n = 8 they differ by 7 %, so learning rates do not carry over."""
Std = Annotated[Deviation, Field(description="Standard deviation over n (population) or over n - 1 (unbiased).")]
Epsilon = Annotated[float, Field(gt=0, description="Added to the standard deviation that is divided by.")]


class GrpoAdvantage(Section):
    """(r - mean) / std within the group (2402.03300); without the std it is Dr. GRPO's (2503.20783)."""

    kind: Literal["grpo"] = "grpo"
    std: Deviation | Literal["none"] = Field(
        "population", description="Over n (population) or over n - 1 (unbiased); none: it is not divided by."
    )
    eps: Epsilon = 1e-6


class BatchStdAdvantage(Section):
    """Mean of the group, one std for the whole batch: easy and hard prompts keep their own scale."""

    kind: Literal["batch_std"]
    of: Literal["rewards", "centred"] = Field(
        "rewards",
        description="Whose std: of the batch's rewards (Lite PPO, 2508.08221), or of those minus their group's mean "
        "(ScaleRL, 2510.13786), so that advantages have variance 1.",
    )
    std: Std = "population"
    eps: Epsilon = 1e-6


class LeaveOneOutAdvantage(Section):
    """Reward minus the mean of the group's other rewards (RLOO, 2402.14740)."""

    kind: Literal["leave_one_out"]
    std: Deviation | Literal["none"] = Field("none", description="Of the whole group, never of the others alone.")
    eps: Epsilon = 1e-6


class MaxRlAdvantage(Section):
    """(r - mean) / mean (2602.02710). A lone winner of G gets G - 1: set objective.advantage_cap."""

    kind: Literal["maxrl"]


class GdpoAdvantage(Section):
    """Each part of the reward is normalised in the group by itself, weighed and summed (2601.05242)."""

    kind: Literal["gdpo"]
    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict, description="Weight of a part's advantage by the part's name; 1 unless given."
    )
    std: Std = "population"
    eps: Epsilon = 1e-6


class HrasAdvantage(Section):
    """alpha x the task's advantage + beta x the consistency's, normalised apart (CORA, 2606.14691)."""

    kind: Literal["hras"]
    alpha: float = Field(1.0, gt=0, description="Weight of the task's advantage.")
    beta: float = Field(0.5, ge=0, description="Weight of the consistency after the warm-up.")
    beta_end: float = Field(0.1, ge=0, description="Its weight after the decay.")
    warmup: int = Field(50, ge=0, description="Steps over which the weight rises from 0 to beta.")
    decay: int = Field(200, ge=0, description="Steps after those over which it goes on to beta_end, linearly.")
    cons_gate: Literal["none", "correct_only"] = Field(
        "correct_only",
        description="correct_only: no credit for consistency in a group without a right answer, where it would reward "
        "being consistently wrong.",
    )
    std_floor: float = Field(
        0.05, ge=0, description="Below this std of the consistency in a group it is noise, and gets no credit."
    )
    std: Std = "population"
    eps: Epsilon = 1e-6


class PythonAdvantage(PythonEntry):
    """An `AdvantageEntry` of `components.objectives.advantages` from outside the project."""

    group: ClassVar[str] = "evenkeel.advantages"


Advantage = Annotated[
    GrpoAdvantage
    | BatchStdAdvantage
    | LeaveOneOutAdvantage
    | MaxRlAdvantage
    | GdpoAdvantage
    | HrasAdvantage
    | PythonAdvantage
    | GaeAdvantage,
    Field(discriminator="kind"),
]


class RredcotRedistribution(Section):
    """The completion's advantage is shifted towards the segments that decided (our reading of 2606.06475)."""

    kind: Literal["rredcot"] = "rredcot"
    strength: float = Field(0.5, gt=0, le=1, description="Change of a token's weight per standard deviation of credit.")
    bank: int = Field(8, ge=2, description="Other completions of the prompt that a prefix is judged by, at most.")
    segments: int = Field(12, ge=2, le=64, description="Segments of a completion, at most; 8 to 16 for long ones.")
    separators: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        ("\n",), min_length=1, description="A segment ends after one of these; one that starts with a letter begins it."
    )
