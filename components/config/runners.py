"""Verifiers that run something: code by its tests, a classifier on text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from components.config.answers import AnswerKind
from components.config.base import Section
from components.config.sandbox import SandboxSettings


class CodeVerifier(Section):
    """The assertions of the reference answer hold of the code in the last fenced block of Python."""

    kind: Literal["code"]
    answers: ClassVar[AnswerKind] = "code"
    marker: str | None = Field(None, min_length=1, description="The code follows the last marker; null: anywhere.")
    score: Literal["all", "share"] = Field("all", description="all: 1 where every test holds; share: of those that do.")
    seconds: float = Field(2.0, gt=0, le=600, description="Wall and processor time for one completion's code.")
    memory_mb: int = Field(512, ge=64, description="Address space of that code's process.")
    max_chars: int = Field(20000, ge=1, description="Longer code is not run: it is wrong.")

    @property
    def parts(self) -> tuple[str, ...]:
        """Reward parts besides the accuracy."""
        return ()

    def beyond(self, sandbox: SandboxSettings, name: str) -> Iterator[str]:
        """The limits that those of the sandbox would cut off; ``name`` is that of these settings."""
        if self.seconds >= sandbox.timeout:
            yield (
                f"{name}.seconds ({self.seconds:g}) must be less than sandbox.timeout ({sandbox.timeout:g}): "
                "otherwise code that does not end is unscorable instead of wrong"
            )
        if self.memory_mb > sandbox.memory_mb:
            yield (
                f"{name}.memory_mb ({self.memory_mb}) cannot exceed sandbox.memory_mb ({sandbox.memory_mb}): the "
                "code's process is a child of the worker and cannot raise its limit"
            )


class ClassifierVerifier(Section):
    """A Hugging Face folder of a sequence-pair classifier: is this answer right? Give its sandbox more memory_mb."""

    kind: Literal["classifier"]
    answers: ClassVar[AnswerKind] = "text"
    path: Path = Field(description="The folder (safetensors), relative to the folder where the command runs.")
    sha256: str | None = Field(None, description="Digest of the folder; filled in when the configuration is resolved.")
    label: str = Field(description="Its class that means right.")
    threshold: float = Field(0.5, gt=0, le=1, description="Right where the probability of that class is at least this.")
    marker: str = Field("#", min_length=1, description="The answer is what follows the last marker.")

    @property
    def parts(self) -> tuple[str, ...]:
        """Reward parts besides the accuracy."""
        return ()
