"""Does the answer follow from the thinking? (CORA, 2606.14691)"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from components.config.base import Section
from components.config.sandbox import SandboxSettings


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
    sandbox: SandboxSettings = SandboxSettings(workers=1, timeout=60.0, cpu_seconds=60.0, memory_mb=16384)


Consistency = Annotated[EmbeddedConsistency | NliConsistency, Field(discriminator="kind")]
