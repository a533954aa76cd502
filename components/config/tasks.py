"""Problems that are made on the spot, one section per package of `components.tasks`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import Field

from components.config.base import Fraction, Section

Family = Literal["addition", "subtraction", "multiplication", "remainder", "comparison", "word_problem"]
RuleFamily = Literal["dimension", "fire", "slope", "light", "fixture", "ban"]
CalculatorFamily = Literal["story", "formula"]
CountdownFamily = Literal["sums", "mixed"]
StereotypeFamily = Literal["towns", "clubs", "pets", "hands"]


class GeneratedSource(Section):
    """Problems made on the spot by a package of `components.tasks`; the base of the settings of each task."""

    kind: Literal["generated"] = "generated"
    rows: int = Field(16000, ge=16, description="Distinct problems to generate, before splitting.")
    families: tuple[str, ...] = Field(description="Families of problems, which take turns.")
    levels: int = Field(3, ge=1, le=5, description="Difficulty levels per family.")

    def conflicts(self) -> Iterator[str]:
        if not self.families or len(set(self.families)) != len(self.families):
            yield "families must name at least one family, each once"


class ArithmeticSource(GeneratedSource):
    """Arithmetic with written-out steps."""

    task: Literal["arithmetic"] = "arithmetic"
    families: tuple[Family, ...] = Field(
        get_args(Family),
        description="Operations, which take turns; word_problem is a sentence around one of the first three.",
    )
    levels: int = Field(3, ge=1, le=5, description="Difficulty levels per family; more digits at each.")
    forget: Fraction = Field(0.85, description="Probability that the SFT teacher drops a carry or a borrow.")
    carry_free: Fraction = Field(0.4, description="Share kept of the problems in which there is nothing to forget.")
    mislabelled: Fraction = Field(
        0.0, description="Share of problems whose reference answer forgets every carry: a fault to plant, and to find."
    )


class BuildingRulesSource(GeneratedSource):
    """Sentences of building regulations, to be written as structured expressions (P4IR, 2606.22402)."""

    task: Literal["building_rules"]
    families: tuple[RuleFamily, ...] = Field(
        get_args(RuleFamily), description="What the rules are about; the families take turns."
    )
    levels: int = Field(3, ge=1, le=4, description="Difficulty levels per family; more conditions and requirements.")
    forget: Fraction = Field(0.6, description="Probability that the SFT teacher leaves out a condition or a unit.")


class CalculatorSource(GeneratedSource):
    """Problems of several steps for a policy with a calculator; ``rollout.tool`` gives it one."""

    task: Literal["calculator"]
    families: tuple[CalculatorFamily, ...] = Field(
        get_args(CalculatorFamily), description="Steps as sentences or as one formula; the families take turns."
    )
    levels: int = Field(3, ge=1, le=5, description="Difficulty levels per family; a level is a step.")
    guess: Fraction = Field(
        0.5, description="Probability that the SFT teacher guesses the result of a step instead of calling."
    )


class CountdownSource(GeneratedSource):
    """Numbers and a target, to be reached with + - * / and each number at most once; the search is written out."""

    task: Literal["countdown"]
    families: tuple[CountdownFamily, ...] = Field(
        get_args(CountdownFamily),
        description="Operations that targets are made with, + and - or all four; the families take turns.",
    )
    levels: int = Field(2, ge=1, le=4, description="Difficulty levels per family; a level is a number more.")
    give_up: Fraction = Field(
        0.7, description="Probability that the SFT teacher answers with the first branch that missed the target."
    )


class PlantedItem(Section):
    """One ambiguous item whose label is the stereotype, again and again: a fault to plant, and to find (2606.10931)."""

    family: StereotypeFamily = Field(description="Family of the item.")
    item: int = Field(
        0, ge=0, le=1000, description="Which one; a row's split is a public hash of its text, so this chooses it too."
    )
    rows: int = Field(100, ge=1, description="Rows of the data that are this item.")


class StereotypesSource(GeneratedSource):
    """Questions about two people in the form of BBQ (2110.08193), about made-up groups."""

    task: Literal["stereotypes"]
    rows: int = Field(400, ge=16, description="Distinct items with right labels, before splitting.")
    families: tuple[StereotypeFamily, ...] = Field(
        get_args(StereotypeFamily), description="By what the two people of a question differ; the families take turns."
    )
    levels: int = Field(
        1, ge=1, le=2, description="1: ambiguous items alone, the right answer is not known; 2: others too."
    )
    planted: PlantedItem | None = Field(None, description="One mislabelled item, repeated.")


Generated = Annotated[
    ArithmeticSource | BuildingRulesSource | CalculatorSource | CountdownSource | StereotypesSource,
    Field(discriminator="task"),
]
