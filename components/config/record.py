"""Where the record of a run is kept, and how long the run may work."""

from __future__ import annotations

from pydantic import Field

from components.config.base import Fraction, Section


class RecordSettings(Section):
    """Where a run is recorded in addition to its own branch, and how exactly it must be reproduced."""

    push: bool = Field(True, description="Push outputs and inputs to the project's default DVC remote, if it has one.")
    git_remote: str = Field(
        "",
        pattern=r"^([^\s-]\S*)?$",
        description="Git remote that the branch of a run is pushed to, such as origin; nowhere when empty.",
    )
    tolerance: Fraction = Field(
        0.0,
        description="How far a metric of a reproduction may be off, absolutely or relatively. 0: the same bytes, which "
        "is what CPUs give. Above 0 only metrics are held to it: GPUs do not give the same bytes twice.",
    )


class BudgetSettings(Section):
    """Limits on a whole run, all its attempts together. A run that reaches one is stopped, and can be continued with a
    higher one. No byte of a checkpoint depends on it."""

    hours: float | None = Field(None, gt=0, description="Hours that its stages may take; null: no limit.")
    gpu_hours: float | None = Field(
        None, gt=0, description="The same, each stage times the GPUs that it works with; null: no limit."
    )
