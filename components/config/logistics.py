"""Settings that state where a run works and how long it waits or may take, and nothing of what it computes but for
rounding.

A run stays the same run when they change: with servers at another address, fewer ranks or more patience it goes on from
its newest checkpoint.
"""

from __future__ import annotations

from typing import Any

from components.config.root import Settings
from components.config.servers import VllmEngine

SAMPLED_WITH = {"kind", "dtype", "kv_cache_dtype", "max_model_len"}
"""Settings of servers that a completion depends on."""
LOGISTICS: dict[str, Any] = {
    "launch": True,
    "record": True,
    "budget": True,
    "health": {"prometheus": True},
    "learner": {"ranks": True, "zero": True},
    "evaluation": {"reuse": True},
    "rollout": {"engine": dict.fromkeys(VllmEngine.model_fields.keys() - SAMPLED_WITH, True)},
}


def substance(settings: Settings, include: dict[str, Any] | None = None) -> dict[str, Any]:
    """Everything else, or what of it is in ``include``, as JSON."""
    return settings.model_dump(mode="json", include=include, exclude=LOGISTICS)
