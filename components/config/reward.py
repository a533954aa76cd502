"""How a completion is judged, and what is added to the raw accuracy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from components.config.base import Section


class SandboxSettings(Section):
    """Fence around a verifier: it runs in a process of its own."""

    timeout: float = Field(5.0, gt=0, description="Seconds for one completion; longer is unscorable.")
    memory_mb: int = Field(512, ge=64, description="Address space of the worker.")


class ExactVerifier(Section):
    """The text after the marker equals the reference answer."""

    kind: Literal["exact"] = "exact"
    marker: str = Field("#", description="The answer is what follows the last marker.")

    @property
    def parts(self) -> tuple[str, ...]:
        """Reward parts beside the accuracy."""
        return ()


class NumericVerifier(Section):
    """The number after the marker (or the last number) equals the reference number."""

    kind: Literal["numeric"]
    marker: str | None = Field(
        "####", description="The answer is the number after the last marker; null: the last one."
    )
    tolerance: float = Field(1e-6, ge=0, description="Relative tolerance.")

    @property
    def parts(self) -> tuple[str, ...]:
        """Reward parts beside the accuracy."""
        return ()


class StructureVerifier(Section):
    """The code skeleton after the marker has the structure of the reference (2606.22402)."""

    kind: Literal["structure"]
    marker: str = Field("", description="The skeleton is what follows the last marker; empty: the whole text.")
    values: bool = Field(True, description="A parameter is the same only with the same value.")
    tree: bool = Field(False, description="Reward part `tree`: 1 - tree edit distance / nodes of the larger tree.")
    max_chars: int = Field(4000, ge=1, description="A longer skeleton is not read: it is wrong.")
    max_nodes: int = Field(400, ge=2, description="The same for one with more nodes.")
    max_depth: int = Field(8, ge=1, description="The same for one with classes nested deeper.")

    @property
    def parts(self) -> tuple[str, ...]:
        """Reward parts beside the accuracy."""
        return ("jaccard_class", "jaccard_function", "jaccard_parameter", *(("tree",) if self.tree else ()))


Verifier = Annotated[ExactVerifier | NumericVerifier | StructureVerifier, Field(discriminator="kind")]


class EmbeddedConsistency(Section):
    """A small classifier, trained by the data stage on the solutions of the SFT split. It needs no files."""

    kind: Literal["embedded"] = "embedded"
    marker: str = Field("#", min_length=1, description="Thinking stands before the last marker, the answer after it.")
    min_auc: float = Field(0.8, ge=0.5, le=1, description="Less on held-out solutions, and it is refused as noise.")
    sandbox: SandboxSettings = SandboxSettings()


class NliConsistency(Section):
    """A Hugging Face folder of a sequence-pair classifier: premise question and thinking, hypothesis the answer."""

    kind: Literal["nli"]
    path: Path = Field(description="The folder (safetensors), relative to the folder where the command runs.")
    sha256: str | None = Field(None, description="Digest of the folder; filled in when the configuration is resolved.")
    label: str | None = Field(
        None, description="Its class that means consistent; null: the one named entailment or consistent."
    )
    marker: str = Field("#", min_length=1, description="Thinking stands before the last marker, the answer after it.")
    sandbox: SandboxSettings = SandboxSettings(timeout=60.0, memory_mb=16384)


Consistency = Annotated[EmbeddedConsistency | NliConsistency, Field(discriminator="kind")]


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
    consistency: Consistency | None = Field(
        None, description="Reward part `consistency`: does the answer follow from the thinking? (CORA, 2606.14691)"
    )
    soft_overlong: SoftOverlong | None = None
    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict,
        description="What one unit of a part is worth, `accuracy` included; 1 unless given. A part of weight 0 is only "
        "measured.",
    )

    @property
    def names(self) -> tuple[str, ...]:
        """Every part of the reward that these settings produce, ``accuracy`` first."""
        optional = {"consistency": self.consistency, "overlong": self.soft_overlong}
        return ("accuracy", *self.verifier.parts, *(name for name, part in optional.items() if part is not None))

    def weight(self, name: str) -> float:
        """What one unit of the part ``name`` is worth."""
        return self.weights.get(name, 1.0)

    @model_validator(mode="after")
    def _weights_fit_the_parts(self) -> RewardSettings:
        if unknown := sorted(set(self.weights) - set(self.names)):
            raise ValueError(
                f"weights names {', '.join(unknown)}; the parts of the reward are {', '.join(self.names)} here"
            )
        if not any(self.weight(name) for name in self.names if name != "overlong"):
            raise ValueError("weights leaves nothing to be rewarded for: give accuracy or another part a weight")
        return self

    @model_validator(mode="after")
    def _consistency_splits_where_the_verifier_does(self) -> RewardSettings:
        if self.consistency is not None and self.consistency.marker != self.verifier.marker:
            raise ValueError(
                f"consistency.marker ({self.consistency.marker!r}) must be verifier.marker ({self.verifier.marker!r}): "
                "otherwise another text is the answer, or none"
            )
        return self
