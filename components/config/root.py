"""The root of the configuration: all sections, in a combination that works; and what of them is logistics.

Logistics state where a run works and how long it waits or may take, and nothing of what it computes but for rounding. A
run stays the same run when they change: with servers at another address, fewer ranks or more patience it goes on from
its newest checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from components.config.combinations import problems
from components.config.identity import chosen
from components.config.settings import Sections


class Settings(Sections):
    """Everything a run depends on besides its inputs and its code."""

    def conflicts(self) -> Iterator[str]:
        if found := problems(self):
            yield "; ".join(found)


OUTSIDE_IDENTITY = chosen(Settings, lambda identity: not identity.run)
"""The settings that a run's identity leaves out: those marked as logistics."""
DEPENDS_ON = chosen(Settings, lambda identity: identity.train)
"""The settings that a byte of stage `train` depends on."""


def substance(settings: Settings, include: dict[str, Any] | None = None) -> dict[str, Any]:
    """Everything but logistics, or what of it is in ``include``, as JSON."""
    return settings.model_dump(mode="json", include=include, exclude=OUTSIDE_IDENTITY)
