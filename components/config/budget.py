"""How long a run may work."""

from __future__ import annotations

from pydantic import Field

from components.config.base import Section


class BudgetSettings(Section):
    """Limits on a whole run, all its attempts together. A run that reaches one is stopped, and can be continued with a
    higher one. No byte of a checkpoint depends on it."""

    hours: float | None = Field(None, gt=0, description="Hours that its stages may take; null: no limit.")
    gpu_hours: float | None = Field(
        None, gt=0, description="The same, each stage times the GPUs that it works with; null: no limit."
    )
