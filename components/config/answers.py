"""Verifiers of answers with a form of their own: mathematics, choices, JSON."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from components.config.base import Section
from components.config.schemas import check_schema

AnswerKind = Literal["number", "expression", "text", "choice", "json", "calculation", "code", "skeleton", "other"]
"""What a verifier judges: the audit tries other texts of each kind (`components.audit.grammar`)."""

_BOXED = "The answer is what follows the last marker; null: what stands in the last \\boxed{}."


class MathVerifier(Section):
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

    @property
    def parts(self) -> tuple[str, ...]:
        """Reward parts besides the accuracy."""
        return ()


class MultipleChoiceVerifier(Section):
    """Exactly one option is chosen, and it is the reference's letter."""

    kind: Literal["multiple_choice"]
    answers: ClassVar[AnswerKind] = "choice"
    marker: str | None = Field(None, min_length=1, description=f"{_BOXED[:-1]}, or after 'the answer is'.")
    options: str = Field("ABCDE", pattern="^[A-Z]{2,26}$", description="The letters of the options.")

    @property
    def parts(self) -> tuple[str, ...]:
        """Reward parts besides the accuracy."""
        return ()


class JsonVerifier(Section):
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
