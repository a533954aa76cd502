"""How a completion is judged, and what is added to the raw accuracy."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from components.config.base import Section


class ExactVerifier(Section):
    """The text after the marker equals the reference answer."""

    kind: Literal["exact"] = "exact"
    marker: str = Field("#", description="The answer is what follows the last marker.")


class NumericVerifier(Section):
    """The number after the marker (or the last number) equals the reference number."""

    kind: Literal["numeric"]
    marker: str | None = Field(
        "####", description="The answer is the number after the last marker; null: the last one."
    )
    tolerance: float = Field(1e-6, ge=0, description="Relative tolerance.")


Verifier = Annotated[ExactVerifier | NumericVerifier, Field(discriminator="kind")]


class SandboxSettings(Section):
    """Fence around a verifier: it runs in a process of its own."""

    timeout: float = Field(5.0, gt=0, description="Seconds for one completion; longer is unscorable.")
    memory_mb: int = Field(512, ge=64, description="Address space of the worker.")


class SoftOverlong(Section):
    """DAPO's length penalty (2503.14476): 0 up to limit - cache tokens, falling to -1 at limit."""

    limit: int = Field(ge=1)
    cache: int = Field(ge=1)

    @model_validator(mode="after")
    def _cache_fits(self) -> SoftOverlong:
        if self.cache > self.limit:
            raise ValueError(f"cache ({self.cache}) cannot exceed limit ({self.limit})")
        return self


class RewardSettings(Section):
    """How a completion is judged, and what is added to the raw accuracy."""

    verifier: Verifier = ExactVerifier()
    sandbox: SandboxSettings = SandboxSettings()
    soft_overlong: SoftOverlong | None = None
