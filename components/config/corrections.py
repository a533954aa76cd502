"""The gap between sampler and trainer. Formulas and sources are in `components.objectives.corrections`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from components.config.base import Section


class TokenTis(Section):
    """Truncated importance sampling per token: weight min(pi_old / pi_rollout, cap), no gradient through it."""

    kind: Literal["tis_token"] = "tis_token"
    cap: float = Field(2.0, ge=1, description="Largest weight of a token.")


class SequenceTis(Section):
    """One truncated weight a sequence. The kind states how token ratios are joined; a product dies with the length."""

    kind: Literal["tis_sequence_product", "tis_sequence_geometric"] = Field(
        description="The product of the token ratios, or their geometric mean."
    )
    cap: float = Field(2.0, ge=1, description="Largest weight of a sequence.")


class _Window(Section):
    low: float = Field(ge=0, le=1, description="Smallest ratio that is kept.")
    high: float = Field(ge=1, description="Largest ratio that is kept.")

    def conflicts(self) -> Iterator[str]:
        if self.low == self.high:
            yield "low 1 and high 1 would reject everything that is not exactly on policy"


class IcePop(_Window):
    """The token's ratio inside the window, 0 outside (2510.18855)."""

    kind: Literal["icepop"]
    low: float = Field(0.5, ge=0, le=1, description="Smallest ratio of a token that is kept.")
    high: float = Field(5.0, ge=1, description="Largest ratio of a token that is kept.")


class SequenceMask(_Window):
    """Whole sequences are dropped when their ratio is outside the window, which has no default: 0.99 to 1.01 fits the
    geometric mean over hundreds of tokens, and ends learning where completions are short (docs/sampler-gap.md)."""

    kind: Literal["mask_sequence_product", "mask_sequence_geometric"] = Field(
        description="The ratio is the product of the token ratios, or their geometric mean."
    )
    veto: float | None = Field(
        None, gt=0, lt=1, description="Token ratio below which its whole sequence is dropped, whatever the mean (1e-4)."
    )


class OffPolicyMask(Section):
    """OPSM (2512.02556): a sequence with A < 0 that the policy is far away from is dropped."""

    delta: float = Field(0.5, gt=0, description="Nats per token, mean of log pi_rollout - log pi.")


Correction = Annotated[TokenTis | SequenceTis | IcePop | SequenceMask, Field(discriminator="kind")]
