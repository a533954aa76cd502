"""How far one batch may move the policy. Formulas and sources are in `components.objectives.ratios`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from components.config.base import Section
from components.config.extensions import PythonEntry


class ClipRatio(Section):
    """PPO's clip; ``high`` above ``low`` is clip-higher (2503.14476); ``dual`` bounds the loss of A < 0."""

    kind: Literal["clip"] = "clip"
    low: float = Field(0.2, ge=0, lt=1, description="epsilon_low; where A < 0 no gradient below 1 - low.")
    high: float = Field(0.28, ge=0, description="epsilon_high; where A > 0 no gradient above 1 + high.")
    dual: float | None = Field(
        None, gt=1, description="Ratio above which A < 0 has no gradient: dual clip's c (3), INTELLECT-2's delta (4)."
    )

    def conflicts(self) -> Iterator[str]:
        if self.dual is not None and self.dual <= 1 + self.high:
            yield f"dual ({self.dual}) must be above 1 + high ({1 + self.high}): it bounds what is outside"


class GspoRatio(Section):
    """One ratio a sequence, the geometric mean of its tokens' (2507.18071). The range is a thousandth of PPO's."""

    kind: Literal["gspo", "gspo_token"] = Field(
        description="gspo: the gradient of the ratio reaches every token alike. gspo_token: each token has its own, "
        "which is the same where A is constant over the sequence."
    )
    low: float = Field(3e-4, ge=0, lt=1, description="Where A < 0 no gradient below 1 - low.")
    high: float = Field(4e-4, ge=0, description="Where A > 0 no gradient above 1 + high.")


class LuspoRatio(Section):
    """GSPO whose sequences weigh as much as they have tokens, so that long answers are not held back (2602.05261)."""

    kind: Literal["luspo"]
    low: float = Field(2e-3, ge=0, lt=1, description="Where A < 0 no gradient below 1 - low.")
    high: float = Field(2.5e-3, ge=0, description="Where A > 0 no gradient above 1 + high.")


class GmpoRatio(Section):
    """Geometric mean of token ratios that are clipped one by one, in log space (2507.20673)."""

    kind: Literal["gmpo"]
    low: float = Field(0.4, ge=0, description="Nats; the ratio range is e^-low to e^high.")
    high: float = Field(0.4, ge=0, description="Nats.")


class CispoRatio(Section):
    """Clip the weight, keep the gradient (2506.13585). ``cap`` is the largest weight itself, not a distance from 1."""

    kind: Literal["cispo"]
    cap: float = Field(5.0, ge=1, description="Largest importance weight (ScaleRL, 2510.13786: 5).")
    floor: float = Field(0.0, ge=0, le=1, description="Smallest importance weight.")
    anchor: Literal["old", "rollout"] = Field("old", description="What the weight is relative to.")


class SapoRatio(Section):
    """A soft gate in place of the clip (2511.20347)."""

    kind: Literal["sapo"]
    tau_positive: float = Field(
        1.0,
        gt=0,
        description="tau where A > 0 in the gate (4 / tau) sigmoid(tau (r - 1)); a higher one is flat sooner.",
    )
    tau_negative: float = Field(1.05, gt=0, description="tau where A < 0.")


class DppoRatio(Section):
    """A trust region in probability, not in ratio, around the sampler's policy (2602.04879)."""

    cap: float = Field(20.0, ge=1, description="Largest importance weight; no gradient flows through the cap.")


class DppoTvRatio(DppoRatio):
    """The bound is on the change of a token's probability."""

    kind: Literal["dppo_tv"]
    delta: float = Field(0.15, gt=0, lt=1, description="Largest change of a token's probability.")


class DppoKlRatio(DppoRatio):
    """The bound is on the KL of "this token or another"."""

    kind: Literal["dppo_kl"]
    delta: float = Field(0.05, gt=0, description="Largest KL, in nats.")


class VespoRatio(Section):
    """The sequence's importance weight W as W^k e^(lambda (1 - W)), each by the advantage's sign (2602.10693)."""

    kind: Literal["vespo"]
    k_positive: float = Field(2.0, gt=0, description="k where A > 0; the weight is largest at W = k / lambda.")
    lambda_positive: float = Field(3.0, gt=0, description="lambda where A > 0.")
    k_negative: float = Field(3.0, gt=0, description="k where A < 0.")
    lambda_negative: float = Field(2.0, gt=0, description="lambda where A < 0.")


class ToprRatio(Section):
    """No importance weight where A > 0, a truncated one where A < 0 (2503.14286)."""

    kind: Literal["topr"]
    cap: float = Field(1.0, gt=0, description="Largest weight of a token with A < 0.")


class DroRatio(Section):
    """A quadratic price on the log-ratio in place of a clip (2405.19107)."""

    kind: Literal["dro"]
    beta: float = Field(1.0, gt=0, description="The price; a token of advantage A comes to rest at A / beta nats.")


class PythonRatio(PythonEntry):
    """A `RatioEntry` of `components.objectives.ratios` from outside the project."""

    group: ClassVar[str] = "evenkeel.ratios"


Ratio = Annotated[
    ClipRatio
    | GspoRatio
    | LuspoRatio
    | GmpoRatio
    | CispoRatio
    | SapoRatio
    | DppoTvRatio
    | DppoKlRatio
    | VespoRatio
    | ToprRatio
    | DroRatio
    | PythonRatio,
    Field(discriminator="kind"),
]
