"""A checkpoint that another trainer made, and what it left of the training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from components.config.base import Section


class AdoptedCheckpoint(Section):
    """A Hugging Face folder with safetensors, or a folder with an adapter of `peft` for ``policy.model``."""

    path: Path = Field(description="The folder, relative to the folder where the command runs.")
    sha256: str | None = Field(None, description="Digest of the folder; filled in when the configuration is resolved.")


class AdoptedLog(Section):
    """The trainer's own log."""

    path: Path = Field(description="The file, relative to the folder where the command runs.")
    sha256: str | None = Field(None, description="Digest of the file; filled in when the configuration is resolved.")
    format: str = Field("auto", description="As `evenkeel audit --format`; auto: it is detected.")


class Adopted(Section):
    """What stage `train` takes over in place of training; ``policy.model`` is the base of the checkpoint."""

    checkpoint: AdoptedCheckpoint
    log: AdoptedLog
    names: dict[str, Any] | None = Field(
        None,
        description="What a file for `evenkeel audit --names` holds, with all that it extends; null: as shipped.",
    )
