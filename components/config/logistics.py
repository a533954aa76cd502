"""Settings that state where a run works and how long it waits or may take, and nothing of what it computes but for
rounding.

A run stays the same run when they change: with servers at another address, fewer ranks or more patience it goes on from
its newest checkpoint.
"""

from __future__ import annotations

from typing import Any

from components.config.identity import chosen
from components.config.root import Settings

LOGISTICS = chosen(Settings, lambda identity: not identity.run)
DEPENDS_ON = chosen(Settings, lambda identity: identity.train)
"""The settings that a byte of stage `train` depends on."""


def substance(settings: Settings, include: dict[str, Any] | None = None) -> dict[str, Any]:
    """Everything else, or what of it is in ``include``, as JSON."""
    return settings.model_dump(mode="json", include=include, exclude=LOGISTICS)
