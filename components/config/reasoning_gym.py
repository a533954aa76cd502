"""Problems that the library reasoning-gym makes, and their judgement by the library (https://pypi.org/project/reasoning-gym)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from components.config.answers import AnswerKind, AnswerVerifier
from components.config.base import Section, without_nulls
from components.config.schemas import check_json

OURS = ("seed", "size")
"""Settings of every data set that follow from the run's own: its seed, and the rows of the source."""


class GymDataset(Section):
    """One data set of the library."""

    weight: float = Field(1.0, ge=0, description="Its share of the rows is this over the sum of all weights.")
    settings: dict[str, Any] = Field(
        default_factory=dict,
        description="Fields of its configuration class; the library's defaults hold for the others.",
    )
    suffix: str = Field("", description="Text put after every question, such as a line that requests a number only.")

    @field_validator("settings")
    @classmethod
    def _seed_and_size_are_ours(cls, settings: dict[str, Any]) -> dict[str, Any]:
        if found := [name for name in OURS if name in settings]:
            raise ValueError(f"{found[0]} follows from the run's seed and data.source.rows; leave it out")
        check_json(settings)
        return settings


class ReasoningGymSource(Section):
    """Problems of data sets of reasoning-gym, drawn by the run's seed."""

    kind: Literal["reasoning_gym"]
    rows: int = Field(ge=1, description="Distinct problems to generate, before splitting.")
    datasets: dict[str, GymDataset] = Field(
        description="Data sets by the library's names. null takes one out that a file named under `extends` has."
    )
    solution: str = Field(
        "{answer}",
        description="The reference solution, which SFT learns from: a text with {answer} in the form that the verifier "
        "reads, such as '#{answer}'.",
    )
    version: str | None = Field(
        None,
        description="Of the library, on which the problems depend; filled in when the configuration is resolved.",
    )

    _null_takes_out = field_validator("datasets", mode="before")(without_nulls)

    @field_validator("solution")
    @classmethod
    def _states_the_answer(cls, solution: str) -> str:
        if "{answer}" not in solution:
            raise ValueError("write {answer} where the answer stands")
        return solution

    def conflicts(self) -> Iterator[str]:
        if not any(dataset.weight for dataset in self.datasets.values()):
            yield "datasets must name at least one data set with a weight above 0"
        empty = [name for name, rows in self.shares().items() if not rows and self.datasets[name].weight]
        if empty:
            yield f"rows ({self.rows}) leaves none to {', '.join(empty)}; raise rows, or the weight"

    def shares(self) -> dict[str, int]:
        """Rows of each data set: by weight, what is left to the largest remainders, earlier ones first."""
        total = sum(dataset.weight for dataset in self.datasets.values())
        exact = {name: self.rows * dataset.weight / total for name, dataset in self.datasets.items()}
        rows = {name: int(share) for name, share in exact.items()}
        by_remainder = sorted(exact, key=lambda name: rows[name] - exact[name])
        for name in by_remainder[: self.rows - sum(rows.values())]:
            rows[name] += 1
        return rows


class ReasoningGymVerifier(AnswerVerifier):
    """The library's own scoring of its data sets. Right is what it gives full marks."""

    kind: Literal["reasoning_gym"]
    answers: ClassVar[AnswerKind] = "other"
    marker: str | None = Field(
        None, min_length=1, description="The answer is what follows the last marker; null: the whole text."
    )
    tag: Annotated[str, Field(pattern="^[A-Za-z]+$")] | None = Field(
        None, description="The answer is what the last such element holds: answer for <answer>...</answer>."
    )
    strip: bool = Field(True, description="White space around the answer does not count.")
    partial: bool = Field(
        False,
        description="Reward part `partial`: the library's score of a wrong answer; some of it is for form alone.",
    )

    def conflicts(self) -> Iterator[str]:
        if self.marker is not None and self.tag is not None:
            yield "marker and tag both say where the answer stands; leave one out"

    @property
    def parts(self) -> tuple[str, ...]:
        return ("partial",) if self.partial else ()
