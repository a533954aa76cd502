"""How old what is trained on is."""

from __future__ import annotations

from components.learner import Batch


def staleness(batch: Batch, version: int, updates: int) -> dict[str, float]:
    """Updates of the policy between the weights that sampled a token and those that an update of it starts from.

    ``staleness`` is their mean over the tokens that count and over the step's updates, ``staleness_max`` the largest.
    Empty where the batch does not know its versions.

    Args:
        version: number of the hand-over that the step starts from. Each is ``updates`` updates after the one before,
            those that were skipped included.
    """
    if batch.versions is None or not batch.response_mask.any():
        return {}
    age = (version - batch.versions[batch.response_mask]).double() * updates
    return {"staleness": age.mean().item() + (updates - 1) / 2, "staleness_max": age.max().item() + updates - 1}
