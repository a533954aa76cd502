"""What keeps a policy exploring. Formulas and sources are in `components.objectives.exploration`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from components.config.base import Section

Share = Annotated[float, Field(gt=0, le=1)]


class EntropyTarget(Section):
    """The coefficient rises while entropy is at or below the target and falls above it (2505.22312)."""

    value: float = Field(0.2, gt=0, description="Nats per token.")
    step: float = Field(0.005, gt=0, description="Change of the coefficient per update.")
    max: float = Field(1.0, gt=0, description="Largest coefficient.")


class EntropyBonus(Section):
    """coef times the entropy of the policy, added to the objective; with ``target`` the coefficient is adaptive."""

    coef: float = Field(0.001, ge=0, description="The coefficient, or where the adaptive one starts.")
    target: EntropyTarget | None = None

    def conflicts(self) -> Iterator[str]:
        if self.target is not None and self.coef > self.target.max:
            yield f"coef ({self.coef}) starts above target.max ({self.target.max})"
        if self.target is None and self.coef == 0:
            yield "coef 0 without a target is no bonus; leave `entropy` out, or give it a target"


class ClipCov(Section):
    """Tokens drawn from those with a high covariance of log-probability and advantage get no gradient (2505.22617)."""

    kind: Literal["clip_cov"]
    share: Share = Field(2e-4, description="Of all tokens; one at least.")
    low: float = Field(1.0, description="A token may be drawn if its covariance is above this")
    high: float = Field(5.0, description="and below this.")

    def conflicts(self) -> Iterator[str]:
        if self.low >= self.high:
            yield f"low ({self.low}) must be below high ({self.high}): nothing lies between them"


class KlCov(Section):
    """The tokens of highest covariance get a penalty on |log pi - log pi_old| (2505.22617)."""

    kind: Literal["kl_cov"]
    share: Share = Field(2e-4, description="Of all tokens; one at least.")
    coef: float = Field(1.0, gt=0, description="Coefficient of the penalty.")


class TopEntropy(Section):
    """Only the tokens of highest entropy have a gradient (2506.01939)."""

    kind: Literal["top_entropy"]
    share: Share = Field(0.2, description="Of all tokens.")


TokenSelection = Annotated[ClipCov | KlCov | TopEntropy, Field(discriminator="kind")]
