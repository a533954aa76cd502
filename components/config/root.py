"""The root of the configuration: all sections, in a combination that works."""

from __future__ import annotations

from pydantic import model_validator

from components.config.combinations import problems
from components.config.settings import Sections


class Settings(Sections):
    """Everything a run depends on besides its inputs and its code."""

    @model_validator(mode="after")
    def _refuse_degenerate_combinations(self) -> Settings:
        if found := problems(self):
            raise ValueError("; ".join(found))
        return self
