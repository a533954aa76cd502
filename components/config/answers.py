"""Verifiers of answers with a form of their own: mathematics, choices, JSON, code, and what a classifier judges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from components.config.base import Section
from components.config.sandbox import SandboxSettings
from components.config.schemas import check_schema

AnswerKind = Literal["number", "expression", "text", "choice", "json", "calculation", "code", "skeleton", "other"]
"""What a verifier judges: the audit tries other texts of each kind (`components.audit.grammar`)."""

_BOXED = "The answer is what follows the last marker; null: what stands in the last \\boxed{}."


class AnswerVerifier(Section):
    """The base of the settings of each verifier of the package."""

    answers: ClassVar[AnswerKind]
    """What it judges."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Reward parts besides the accuracy."""
        return ()


class MathVerifier(AnswerVerifier):
    """The answer is mathematically the reference, LaTeX or plain."""

    kind: Literal["math"]
    answers: ClassVar[AnswerKind] = "expression"
    marker: str | None = Field(
        None,
        min_length=1,
        description="The answer stands in the line after the last marker; null: in the last \\boxed{}.",
    )
    decimals: int = Field(6, ge=0, le=15, description="Decimal places to which decimals agree.")
    percent: Literal["strip", "fraction"] = Field("strip", description="50 % is 50, or one half.")
    max_chars: int = Field(400, ge=1, description="A longer answer is not read: it is wrong.")


class MultipleChoiceVerifier(AnswerVerifier):
    """Exactly one option is chosen, and it is the reference's letter."""

    kind: Literal["multiple_choice"]
    answers: ClassVar[AnswerKind] = "choice"
    marker: str | None = Field(None, min_length=1, description=f"{_BOXED[:-1]}, or after 'the answer is'.")
    options: str = Field("ABCDE", pattern="^[A-Z]{2,26}$", description="The letters of the options.")


class JsonVerifier(AnswerVerifier):
    """The JSON value after the marker equals the reference; keys have no order."""

    kind: Literal["json"]
    answers: ClassVar[AnswerKind] = "json"
    marker: str = Field("", description="The JSON is what follows the last marker; empty: the whole text.")
    json_schema: dict[str, Any] | None = Field(
        None, description="A right answer also follows this JSON schema. Its patterns are run by RE2."
    )
    structure: bool = Field(False, description="Reward parts `parsed` and, with a schema, `schema`.")
    max_chars: int = Field(20000, ge=1, description="A longer answer is not read: it is wrong.")
    max_depth: int = Field(32, ge=1, le=200, description="The same for one nested deeper.")

    @field_validator("json_schema")
    @classmethod
    def _a_sound_schema(cls, given: dict[str, Any] | None) -> dict[str, Any] | None:
        if given is not None:
            check_schema(given)
        return given

    @property
    def parts(self) -> tuple[str, ...]:
        """Reward parts besides the accuracy."""
        schema = () if self.json_schema is None else ("schema",)
        return ("parsed", *schema) if self.structure else ()


class CodeVerifier(AnswerVerifier):
    """The assertions of the reference answer hold of the code in the last fenced block of Python."""

    kind: Literal["code"]
    answers: ClassVar[AnswerKind] = "code"
    marker: str | None = Field(None, min_length=1, description="The code follows the last marker; null: anywhere.")
    score: Literal["all", "share"] = Field("all", description="all: 1 where every test holds; share: of those that do.")
    seconds: float = Field(2.0, gt=0, le=600, description="Wall and processor time for one completion's code.")
    memory_mb: int = Field(512, ge=64, description="Address space of that code's process.")
    max_chars: int = Field(20000, ge=1, description="Longer code is not run: it is wrong.")

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


class ClassifierVerifier(AnswerVerifier):
    """A Hugging Face folder of a sequence-pair classifier: is this answer right? Give its sandbox more memory_mb."""

    kind: Literal["classifier"]
    answers: ClassVar[AnswerKind] = "text"
    path: Path = Field(description="The folder (safetensors), relative to the folder where the command runs.")
    sha256: str | None = Field(None, description="Digest of the folder; filled in when the configuration is resolved.")
    label: str = Field(description="Its class that means right.")
    threshold: float = Field(0.5, gt=0, le=1, description="Right where the probability of that class is at least this.")
    marker: str = Field("#", min_length=1, description="The answer is what follows the last marker.")
