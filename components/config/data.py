"""Where prompts come from, how they are split, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from components.config.base import Fraction, Section

Family = Literal["addition", "subtraction", "multiplication", "remainder", "comparison", "word_problem"]
RuleFamily = Literal["dimension", "fire", "slope", "light", "fixture", "ban"]
CalculatorFamily = Literal["story", "formula"]


class GeneratedSource(Section):
    """Problems made on the spot by a package of `components.tasks`; the base of the settings of each task."""

    kind: Literal["generated"] = "generated"
    rows: int = Field(16000, ge=16, description="Distinct problems to generate, before splitting.")
    families: tuple[str, ...] = Field(description="Families of problems, which take turns.")
    levels: int = Field(3, ge=1, le=5, description="Difficulty levels per family.")

    @model_validator(mode="after")
    def _families_are_distinct(self) -> GeneratedSource:
        if not self.families or len(set(self.families)) != len(self.families):
            raise ValueError("families must name at least one family, each once")
        return self


class ArithmeticSource(GeneratedSource):
    """Arithmetic with written-out steps."""

    task: Literal["arithmetic"] = "arithmetic"
    families: tuple[Family, ...] = get_args(Family)
    levels: int = Field(3, ge=1, le=5, description="Difficulty levels per family; more digits at each.")
    forget: Fraction = Field(0.85, description="Probability that the SFT teacher drops a carry or a borrow.")
    carry_free: Fraction = Field(0.4, description="Share kept of the problems in which there is nothing to forget.")


class BuildingRulesSource(GeneratedSource):
    """Sentences of building regulations, to be written as structured expressions (P4IR, 2606.22402)."""

    task: Literal["building_rules"]
    families: tuple[RuleFamily, ...] = get_args(RuleFamily)
    levels: int = Field(3, ge=1, le=4, description="Difficulty levels per family; more conditions and requirements.")
    forget: Fraction = Field(0.6, description="Probability that the SFT teacher leaves out a condition or a unit.")


class CalculatorSource(GeneratedSource):
    """Problems of several steps for a policy with a calculator; ``rollout.tool`` gives it one."""

    task: Literal["calculator"]
    families: tuple[CalculatorFamily, ...] = get_args(CalculatorFamily)
    levels: int = Field(3, ge=1, le=5, description="Difficulty levels per family; a level is a step.")
    guess: Fraction = Field(
        0.5, description="Probability that the SFT teacher guesses the result of a step instead of calling."
    )


Generated = Annotated[ArithmeticSource | BuildingRulesSource | CalculatorSource, Field(discriminator="task")]


class FileSource(Section):
    """Rows of a JSON-lines or Parquet file."""

    kind: Literal["jsonl", "parquet"]
    path: Path = Field(description="The file, relative to the folder where the command runs.")
    sha256: str | None = Field(None, description="Digest of the file; filled in when the configuration is resolved.")
    name: str = Field("", description="Name of the source in records; the file's stem when empty.")
    question: str = Field("question", description="Column of the question.")
    answer: str = Field("answer", description="Column of the reference answer or solution.")
    answer_pattern: str | None = Field(
        None, description="Regular expression whose first group is the final answer inside the answer column."
    )
    id: str | None = Field(None, description="Column of a unique id; ids are content hashes when absent.")
    family: str | None = Field(None, description="Column that names the family, for slices.")
    difficulty: str | None = Field(None, description="Column with a number, higher is harder.")


Source = Annotated[Generated | FileSource, Field(discriminator="kind")]


class SplitSettings(Section):
    """Shares of the rows, assigned by content hash: adding rows never moves an old one to another split."""

    sft: Fraction = 0.75
    train: Fraction = 0.125
    dev: Fraction = 0.025
    test: Fraction = 0.1

    @model_validator(mode="after")
    def _shares_add_up(self) -> SplitSettings:
        total = self.sft + self.train + self.dev + self.test
        if abs(total - 1) > 1e-9:
            raise ValueError(f"the four shares must add up to 1, they add up to {total:g}")
        if min(self.train, self.dev, self.test) == 0:
            raise ValueError("train, dev and test must each have a share above 0")
        return self


class ValidationSettings(Section):
    """Limits of the Great Expectations suite. A row that breaks one goes to quarantine."""

    max_question_chars: int = Field(4000, ge=1)
    max_solution_chars: int = Field(8000, ge=1)
    max_quarantined: Fraction = Field(0.01, description="Share of quarantined rows above which the stage stops.")


class DataSettings(Section):
    """Stage `data`."""

    source: Source = ArithmeticSource()
    splits: SplitSettings = SplitSettings()
    validation: ValidationSettings = ValidationSettings()
