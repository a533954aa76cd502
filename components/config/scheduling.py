"""Which prompts come next, and how they are grouped beforehand."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from components.config.base import Section


class ClustersSettings(Section):
    """Stage `clusters`: group the training prompts and rank them by difficulty, under the SFT checkpoint."""

    k: int = Field(8, ge=1, description="Clusters of k-means; those smaller than the schedule's window are merged.")
    components: int = Field(32, ge=2, description="Dimensions kept by PCA.")


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
    min_prob: float = Field(0.0, ge=0, lt=1, description="Floor of a cluster's probability, in units of 1/K.")
    move: Literal["adjacent", "outside"] = Field(
        "adjacent", description="One slot a visit (the authors' code), or over the whole window (the paper's wording)."
    )
    reset_draws: int = Field(
        0, ge=0, description="Draws (refills count) between resets to the easiest window; 0 never resets."
    )


Schedule = Annotated[UniformSchedule | AdsSchedule, Field(discriminator="kind")]
