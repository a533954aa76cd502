"""How old what is trained on is, and what sampler and learner say of the same weights all the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from components.learner.base import Learner
from components.learner.batch import Batch, build_batch
from components.learner.signals import mismatch_signals
from components.types import Group

Signals = dict[str, float]
MISMATCH = "mismatch_"


def staleness(batch: Batch, version: int, updates: int) -> Signals:
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


def named(update: Signals, batch: Batch, version: int) -> Signals:
    """The update's signals under the names that they deserve.

    A gap between sampler and learner that is more than a matter of rounding is a fault where both have the same
    weights (``mismatch_*``), and what was to be expected where the policy has moved since (``drift_*``).
    """
    fresh = batch.versions is None or not bool((batch.versions[batch.response_mask] < version).any())
    if fresh:
        return update
    return {name.replace(MISMATCH, "drift_"): value for name, value in update.items()}


def mismatch(learner: Learner, groups: Sequence[Group], pad_id: int) -> Signals:
    """``mismatch_*`` of completions that were sampled with the learner's present weights."""
    if not any(group.completions for group in groups):
        return {}
    batch = build_batch(groups, pad_id)
    found = mismatch_signals(replace(batch, old_logp=learner.logprobs(batch)), None)
    return {name: value for name, value in found.items() if name.startswith(MISMATCH)}
