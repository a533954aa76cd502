"""The base of every settings section."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Beta = Annotated[float, Field(ge=0, lt=1)]
"""A decay rate of AdamW."""
Fraction = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """A group of settings: frozen, unknown keys refused, no infinities."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)
