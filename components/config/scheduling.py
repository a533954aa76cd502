"""Which prompts come next, and how they are grouped beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from components.config.base import Fraction, Section
from components.config.extensions import PythonEntry


class PolicyEmbedding(Section):
    """Prompts as the policy itself sees them: the mean of its last hidden states (2606.22305)."""

    kind: Literal["policy"] = "policy"


class ModelEmbedding(Section):
    """A Hugging Face folder of a sentence-embedding model: the mean of its last hidden states."""

    kind: Literal["model"]
    path: Path = Field(description="The folder (safetensors), relative to the folder where the command runs.")
    sha256: str | None = Field(None, description="Digest of the folder; filled in when the configuration is resolved.")
    max_tokens: int = Field(512, ge=8, description="A longer text is cut at its end.")


Embedding = Annotated[PolicyEmbedding | ModelEmbedding, Field(discriminator="kind")]


class ClustersSettings(Section):
    """Stage `clusters`: group the training prompts and rank them by difficulty, under the SFT checkpoint.

    Only the schedule `ads` reads any of it; for others the stage computes nothing.
    """

    prompts: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto",
        description="Training prompts that are ranked, drawn by seed; ads trains on no others. "
        "auto: (train.steps + 4) x clusters.k x schedule.window.",
    )
    k: int = Field(8, ge=1, description="Clusters of k-means; those smaller than the schedule's window are merged.")
    components: int = Field(32, ge=2, description="Dimensions kept by PCA.")
    embedding: Embedding = Field(PolicyEmbedding(), description="Makes of each prompt the vector that is clustered.")


class UniformSchedule(Section):
    """Every prompt once an epoch, in a seeded order."""

    kind: Literal["uniform"] = "uniform"


class AdsSchedule(Section):
    """Adaptive Data Scheduling (2606.22305): clusters drawn by success, a window at the policy's boundary."""

    kind: Literal["ads"] = "ads"
    window: int = Field(8, ge=1, description="B, prompts of a cluster that are in play at a time.")
    active: int = Field(4, ge=1, description="Clusters drawn per step; active x window prompts make a step.")
    band: float = Field(0.17, gt=0, lt=0.5, description="A prompt is at the boundary while |success - 1/2| <= band.")
    alpha: float = Field(0.3, ge=0, le=1, description="How fast cluster probabilities follow success.")
    weight: Literal["success", "boundary"] = Field(
        "success", description="What they follow: a cluster's success r (the paper), or r(1 - r), largest at one half."
    )
    min_prob: float = Field(0.0, ge=0, lt=1, description="Floor of a cluster's probability, in units of 1/K.")
    move: Literal["adjacent", "outside"] = Field(
        "adjacent", description="One slot a visit (the authors' code), or over the whole window (the paper's wording)."
    )
    reset_draws: Annotated[int, Field(ge=0)] | Literal["auto"] = Field(
        0,
        description="Draws (refills count) between resets to the easiest window; 0 never resets, auto is the paper's "
        "epoch: floor(prompts / (active x window)).",
    )


class OpenGate(Section):
    """Admits every prompt."""

    kind: Literal["open"]


class GradientGate(Section):
    """Admits prompts that are expected to carry a gradient: success was neither 0 nor 1 when last measured."""

    kind: Literal["gradient"] = "gradient"
    low: Fraction = Field(0.0, description="Last success must lie above it.")
    high: Fraction = Field(1.0, description="And below this one.")
    rest: int = Field(1, ge=0, description="Draws (refills count) that a prompt which carries one sits out afterwards.")
    retry: int = Field(32, ge=0, description="Draws after which one that carried none is tried again.")

    def conflicts(self) -> Iterator[str]:
        if self.low >= self.high:
            yield f"low ({self.low:g}) must be below high ({self.high:g})"
        if self.retry < self.rest:
            yield f"retry ({self.retry}) before rest ({self.rest}) would prefer prompts without a gradient"


Gate = Annotated[OpenGate | GradientGate, Field(discriminator="kind")]


class PoolShares(Section):
    """Share of a draw per pool; a pool with too few admitted prompts leaves the rest of its share to the others."""

    easy: Fraction = Field(0.1, description="Share of prompts whose last success was at least schedule.easy.")
    normal: Fraction = Field(0.5, description="Share of prompts whose last success was between the two limits.")
    hard: Fraction = Field(
        0.2, description="Share of prompts whose last success was at most schedule.hard, or unscorable."
    )
    unseen: Fraction = Field(0.2, description="Share of prompts that were never drawn.")

    def conflicts(self) -> Iterator[str]:
        total = self.easy + self.normal + self.hard + self.unseen
        if abs(total - 1) > 1e-9:
            yield f"the four shares must add up to 1, they add up to {total:g}"


class PoolsSchedule(Section):
    """Pools by measured success, a share of every draw for each, and a gate in front of all of them."""

    kind: Literal["difficulty_pools"]
    easy: Fraction = Field(0.75, description="Last success from which on a prompt is easy.")
    hard: Fraction = Field(0.25, description="Last success up to which it is hard.")
    shares: PoolShares = PoolShares()
    gate: Gate = Field(GradientGate(), description="Which prompts that were drawn before may be drawn again.")

    def conflicts(self) -> Iterator[str]:
        if self.hard >= self.easy:
            yield f"hard ({self.hard:g}) must be below easy ({self.easy:g})"


class GresoSchedule(Section):
    """GRESO (2506.02177): skip a prompt by chance, the more surely the longer its groups had no variance."""

    kind: Literal["greso"]
    explore: float = Field(
        0.5, gt=0, le=1, description="p at the start; a prompt is drawn with probability p ** streak."
    )
    move: Fraction = Field(0.01, description="What p moves by after a draw.")
    easy: Fraction = Field(1 / 12, description="Target share of groups that are all right; above it p of those falls.")
    hard: Fraction = Field(1 / 6, description="Target share of groups that are all wrong.")
    least: float = Field(0.01, gt=0, le=1, description="Probability below which none falls: no prompt is starved.")


class MoppsSchedule(Section):
    """MoPPS (2507.04632): the prompts whose success, drawn from its posterior, is nearest to a target."""

    kind: Literal["mopps"]
    target: Fraction = Field(0.5, description="Success rate that drawn prompts are nearest to.")
    memory: Fraction = Field(0.5, description="lambda, weight of earlier observations relative to the newest.")
    candidates: int = Field(16, ge=1, description="Prompts considered for each that is drawn.")


class ForecastSchedule(Section):
    """Skip what a model of each prompt's success forecasts to carry no gradient; where it knows nothing, uniform."""

    kind: Literal["forecast"]
    memory: float = Field(0.9, gt=0, le=1, description="What an observation counts after each later draw.")
    share: Fraction = Field(0.5, description="Of the better prompts' chance of a mixed group; below it chance decides.")
    explore: float = Field(0.05, gt=0, le=1, description="Probability below which none falls: no prompt is starved.")
    finish: Fraction = Field(
        0.4, description="Chance of a mixed group from which on one is completed (rollout.two_stage)."
    )


class PythonSchedule(PythonEntry):
    """A `ScheduleEntry` of `components.scheduling` from outside the project."""

    group: ClassVar[str] = "evenkeel.schedules"


Schedule = Annotated[
    UniformSchedule | AdsSchedule | PoolsSchedule | GresoSchedule | MoppsSchedule | ForecastSchedule | PythonSchedule,
    Field(discriminator="kind"),
]
