"""Direct preference optimisation on stored pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from components.config.base import AdamWSettings, Section


class PairsFile(Section):
    """Pairs from elsewhere: JSON lines with the texts ``prompt``, ``chosen`` and ``rejected``."""

    path: Path = Field(description="The file, relative to the folder where the command runs.")
    sha256: str | None = Field(None, description="Digest of the file; filled in when the configuration is resolved.")


class DpoSettings(AdamWSettings):
    """Stage `dpo`: direct preference optimisation (2305.18290). ``steps`` 0 leaves it out.

    The defaults are those of the paper, for models of billions of parameters; a tiny one needs a far higher rate.
    """

    steps: int = Field(0, ge=0, description="Updates; 0 leaves the stage out.")
    start: Literal["sft", "train"] = Field("sft", description="Stage whose checkpoint is the start and the reference.")
    pairs: PairsFile | None = Field(None, description="Pairs from elsewhere; null takes those of this run's groups.")
    held_out: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.1, description="Share of the prompts whose pairs are only measured, never trained on."
    )
    batch_size: int = Field(64, ge=1, description="Pairs per update.")
    beta: float = Field(0.1, gt=0, description="How dearly a step away from the reference must be paid.")
    label_smoothing: float = Field(
        0.0, ge=0, lt=0.5, description="Share of pairs that are taken to be the wrong way round (conservative DPO)."
    )
    length_normalised: bool = Field(
        False, description="Mean instead of sum over a completion's tokens; beta then has to be greater, 2 to 10."
    )
    lr: float = Field(1e-6, gt=0, le=1, description="Largest learning rate, at the end of the warm-up.")
    warmup: int = Field(10, ge=0, description="Steps of linear warm-up; a cosine decay to 0 follows.")
    micro_batch_tokens: int = Field(4096, ge=64, description="Padded tokens of one forward and backward pass.")
    checkpoint_every: int = Field(
        50, ge=1, description="Steps between checkpoints, from which a stopped stage goes on."
    )
