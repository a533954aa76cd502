"""Too large a step.

In the field: a learning rate copied from SFT, several updates a rollout and no room above the clip; entropy goes first.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.benchmarks.health.faults.base import Fault
from tests.benchmarks.health.healthy import LR


class HotSymmetricClip(Fault):
    """Ten times the learning rate, a symmetric clip, four updates a step; from the start."""

    changes: ClassVar[dict[str, Any]] = {
        "learner": {"lr": 10 * LR, "updates_per_step": 4},
        "objective": {"ratio": {"kind": "clip", "low": 0.2, "high": 0.2}},
    }
