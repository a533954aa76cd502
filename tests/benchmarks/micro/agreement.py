"""Two updates are compared only where they were the same."""

from __future__ import annotations

import math
from collections.abc import Sequence

Update = tuple[float, float]
"""The loss, and the norm of the gradient before clipping."""
LEAST_LOSS = 1e-2
"""The loss of an update on its own samples is near 0 by itself; a difference is seen against at least this."""


def apart(ours: Sequence[Update], theirs: Sequence[Update], tolerance: float) -> float:
    """The largest relative difference of loss and norm, update by update.

    Raises:
        ValueError: It is above the tolerance, or one made more updates than the other.
    """
    found = 0.0
    for (loss, norm), (their_loss, their_norm) in zip(ours, theirs, strict=True):
        found = max(found, _relative(loss, their_loss, LEAST_LOSS), _relative(norm, their_norm))
    if not found <= tolerance:
        raise ValueError(f"not the same work: loss and norm {list(ours)} here, {list(theirs)} there")
    return found


def _relative(a: float, b: float, least: float = 1e-12) -> float:
    found = abs(a - b) / max(abs(a), abs(b), least)
    return found if math.isfinite(found) else math.inf
