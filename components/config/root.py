"""The root of the configuration: all sections, in a combination that works; and what of them is logistics.

Logistics state where a run works and how long it waits or may take, and nothing of what it computes but for rounding. A
run stays the same run when they change: with servers at another address, fewer ranks or more patience it goes on from
its newest checkpoint.
"""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from components.config.combinations import problems
from components.config.identity import chosen
from components.config.settings import Sections


class Settings(Sections):
    """Everything a run depends on besides its inputs and its code."""

    @model_validator(mode="after")
    def _refuse_degenerate_combinations(self) -> Settings:
        if found := problems(self):
            raise ValueError("; ".join(found))
        return self


OUTSIDE_IDENTITY = chosen(Settings, lambda identity: not identity.run)
"""The settings that a run's identity leaves out: those marked as logistics."""
DEPENDS_ON = chosen(Settings, lambda identity: identity.train)
"""The settings that a byte of stage `train` depends on."""


def substance(settings: Settings, include: dict[str, Any] | None = None) -> dict[str, Any]:
    """Everything but logistics, or what of it is in ``include``, as JSON."""
    return settings.model_dump(mode="json", include=include, exclude=OUTSIDE_IDENTITY)
