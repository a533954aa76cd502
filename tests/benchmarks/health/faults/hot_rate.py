"""A learning rate that is too hot.

In the field: a rate copied from a smaller model. Within a few steps the entropy is gone and nothing is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.benchmarks.health.faults.base import Fault

if TYPE_CHECKING:
    from tests.benchmarks.health.grounds import Ground

TIMES = 7.5


class HotRate(Fault):
    """The ground's learning rate times `TIMES`, from the start."""

    def changes_on(self, ground: Ground) -> dict[str, Any]:
        return {"learner": {"lr": TIMES * ground.lr}}
