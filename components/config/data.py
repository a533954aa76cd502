"""How prompts are split, and what is refused."""

from __future__ import annotations

from pydantic import Field, model_validator

from components.config.base import Fraction, Section
from components.config.sources import Source
from components.config.tasks import ArithmeticSource


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
