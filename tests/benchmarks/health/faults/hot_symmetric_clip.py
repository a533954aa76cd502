"""Too large a step.

In the field: a learning rate copied from SFT, several updates a rollout and no room above the clip; entropy goes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.benchmarks.health.faults.base import Fault

if TYPE_CHECKING:
    from tests.benchmarks.health.grounds import Ground


class HotSymmetricClip(Fault):
    """Ten times the learning rate, a symmetric clip, four updates a step; from the start."""

    def changes_on(self, ground: Ground) -> dict[str, Any]:
        return {
            "learner": {"lr": 10 * ground.lr, "updates_per_step": 4},
            "objective": {"ratio": {"kind": "clip", "low": 0.2, "high": 0.2}},
        }
