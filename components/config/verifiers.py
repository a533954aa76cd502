"""How an answer is judged, one section per verifier of `components.rewards`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from components.config.answers import (
    AnswerKind,
    AnswerVerifier,
    ClassifierVerifier,
    CodeVerifier,
    JsonVerifier,
    MathVerifier,
    MultipleChoiceVerifier,
)
from components.config.environments import EnvironmentVerifier
from components.config.extensions import Conversational, PythonEntry
from components.config.reasoning_gym import ReasoningGymVerifier


class ExactVerifier(AnswerVerifier):
    """The text after the marker equals the reference answer."""

    kind: Literal["exact"] = "exact"
    answers: ClassVar[AnswerKind] = "text"
    marker: str = Field("#", description="The answer is what follows the last marker.")


class NumericVerifier(AnswerVerifier):
    """The number after the marker (or the last number) equals the reference number."""

    kind: Literal["numeric"]
    answers: ClassVar[AnswerKind] = "number"
    marker: str | None = Field(
        "####",
        description="The answer is the one number in the line after the last marker; null: the last one of the text.",
    )
    tolerance: float = Field(
        1e-6,
        ge=0,
        description="Relative tolerance; a whole reference is never another whole number, nor half of one away.",
    )
    units: Literal["strip", "require", "convert"] = Field(
        "strip", description="strip: units do not count; require: the reference's own; convert: any of its dimension."
    )
    percent: Literal["strip", "fraction"] = Field("strip", description="50 % is 50, or one half.")


class StructureVerifier(AnswerVerifier):
    """The code skeleton after the marker has the structure of the reference (2606.22402)."""

    kind: Literal["structure"]
    answers: ClassVar[AnswerKind] = "skeleton"
    marker: str = Field("", description="The skeleton is what follows the last marker; empty: the whole text.")
    values: bool = Field(True, description="A parameter is the same only with the same value.")
    tree: bool = Field(False, description="Reward part `tree`: 1 - tree edit distance / nodes of the larger tree.")
    max_chars: int = Field(4000, ge=1, description="A longer skeleton is not read: it is wrong.")
    max_nodes: int = Field(400, ge=2, description="The same for one with more nodes.")
    max_depth: int = Field(8, ge=1, description="The same for one with classes nested deeper.")

    @property
    def parts(self) -> tuple[str, ...]:
        """Reward parts besides the accuracy."""
        return ("jaccard_class", "jaccard_function", "jaccard_parameter", *(("tree",) if self.tree else ()))


class CountdownVerifier(AnswerVerifier):
    """The expression after the marker reaches the question's target with the question's numbers."""

    kind: Literal["countdown"]
    answers: ClassVar[AnswerKind] = "calculation"
    marker: str = Field("#", min_length=1, description="The expression is what follows the last marker.")


class PythonVerifier(PythonEntry):
    """A `VerifierEntry` of `components.rewards` or a plain function from outside the project, behind the same fence as
    all others."""

    group: ClassVar[str] = "evenkeel.verifiers"

    marker: str | None = Field(
        "#", min_length=1, description="The answer is what follows the last marker; null: the whole text."
    )
    answers: AnswerKind = Field(
        "other", description="What it judges: the audit also tries what is wrong, right or slow to judge of that kind."
    )
    rewards: tuple[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], ...] = Field(
        (), description="Names of the reward parts besides the accuracy that it gives every completion."
    )
    conversational: Conversational = False

    @property
    def parts(self) -> tuple[str, ...]:
        """Reward parts besides the accuracy."""
        return self.rewards


Verifier = Annotated[
    ExactVerifier
    | NumericVerifier
    | MathVerifier
    | MultipleChoiceVerifier
    | JsonVerifier
    | CodeVerifier
    | ClassifierVerifier
    | StructureVerifier
    | CountdownVerifier
    | ReasoningGymVerifier
    | EnvironmentVerifier
    | PythonVerifier,
    Field(discriminator="kind"),
]
