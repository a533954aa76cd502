"""How a completion is judged, and what is added to the raw accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from components.config.answers import CodeVerifier
from components.config.base import Section
from components.config.consistency import Consistency
from components.config.extensions import Functions
from components.config.sandbox import SandboxSettings
from components.config.verifiers import ExactVerifier, Verifier

BUILT_IN = ("accuracy", "consistency", "kl", "overlong")
"""Parts of the reward that functions cannot be named after, besides those of the verifier."""


class SoftOverlong(Section):
    """DAPO's length penalty (2503.14476): 0 up to limit - cache tokens, falling to -1 at limit."""

    limit: int = Field(ge=1, description="Tokens of a completion, end token included, from which the penalty is -1.")
    cache: int = Field(ge=1, description="Tokens below limit over which the penalty falls from 0 to -1.")

    def conflicts(self) -> Iterator[str]:
        if self.cache > self.limit:
            yield f"cache ({self.cache}) cannot exceed limit ({self.limit})"


class RewardSettings(Section):
    """How a completion is judged, and what is added to the raw accuracy."""

    verifier: Verifier = Field(ExactVerifier(), description="Decides whether an answer is right.")
    sandbox: SandboxSettings = SandboxSettings()
    consistency: Consistency | None = Field(
        None, description="Reward part `consistency`: does the answer follow from the thinking? (CORA, 2606.14691)"
    )
    soft_overlong: SoftOverlong | None = None
    functions: Functions = Field(
        default_factory=dict, description="Parts of the reward by name: plain functions with TRL's signature."
    )
    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict,
        description="What one unit of a part is worth, `accuracy` included; 1 unless given. A part of weight 0 is only "
        "measured.",
    )

    shaping: float = Field(
        1.0, ge=0, le=1, description="What every part but accuracy is multiplied with, on top of its weight."
    )

    @property
    def names(self) -> tuple[str, ...]:
        """Every part of the reward that these settings produce, ``accuracy`` first."""
        optional = {"consistency": self.consistency, "overlong": self.soft_overlong}
        given = (name for name, part in optional.items() if part is not None)
        return ("accuracy", *self.verifier.parts, *given, *self.functions)

    def weight(self, name: str) -> float:
        """What one unit of the part ``name`` is worth."""
        return self.functions[name].weight if name in self.functions else self.weights.get(name, 1.0)

    def conflicts(self) -> Iterator[str]:
        taken = (*BUILT_IN, *self.verifier.parts)
        for name in self.functions:
            if name in taken or name.endswith("_missing"):
                yield f"functions.{name}: choose another name; {', '.join(taken)} and *_missing are taken"
            if name in self.weights:
                yield f"weights.{name}: set functions.{name}.weight instead"
        if unknown := sorted(set(self.weights) - set(self.names)):
            yield f"weights names {', '.join(unknown)}; the parts of the reward are {', '.join(self.names)} here"
        if not any(self.weight(name) for name in self.names if name != "overlong"):
            yield "weights leaves nothing to be rewarded for: give accuracy or another part a weight"
        if isinstance(self.verifier, CodeVerifier) and (found := [*self.verifier.beyond(self.sandbox, "verifier")]):
            yield "; ".join(found)
        if self.consistency is not None and self.consistency.marker != self.verifier.marker:
            yield (
                f"consistency.marker ({self.consistency.marker!r}) must be verifier.marker ({self.verifier.marker!r}): "
                "otherwise another text is the answer, or none"
            )
