"""Whether an update did what it was made for: it raises the probability of what had a positive advantage.

A first-order check on a few rows of the batch: of two families, which change from step to step, the row with the
largest advantage and the one with the smallest are scored again after the update. It needs no knowledge of the loss, so
it finds a sign that is wrong anywhere in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from components.learner.base import Learner
from components.learner.batch import Batch
from components.objectives.tokens import usable
from components.types import Group

FAMILIES = 2
"""Families that are looked at in a step, in turn; two rows of each, in the demo 4 of 256."""
AT_MOST = 5.0
"""Nats that one token counts at most in `Effect.moved`: a mean over few tokens would be that of its rarest one."""


class Effect(NamedTuple):
    """By family, whether the row with a positive advantage has gained more than the one with a negative; and how far
    the update has moved the policy on these rows: mean ``|change of log-probability|``, nats per token."""

    raised: dict[str, bool]
    moved: float


@dataclass(frozen=True)
class Rows:
    """Some rows of a batch, and their log-probabilities ``[B, R]`` before the update.

    ``numbers`` are their places in the whole batch; ``chosen`` are, by family, the places of the row with the largest
    advantage and of the one with the smallest.
    """

    part: Batch
    numbers: Sequence[int]
    chosen: Mapping[str, tuple[int, int]]
    before: Tensor


def rows_of(learner: Learner, batch: Batch, groups: Sequence[Group], turn: int, *, exact: bool) -> Rows | None:
    """The rows that are looked at, before the update; None where no family has rows of both signs.

    Args:
        batch: what is learned from.
        groups: what the batch was made of.
        turn: number of the step; states which families' turn it is.
        exact: the sampler's log-probabilities are the learner's, so these need not be computed.
    """
    chosen = _chosen(batch, groups, turn)
    if not chosen:
        return None
    numbers = sorted({row for pair in chosen.values() for row in pair})
    part = batch.rows(torch.tensor(numbers))
    return Rows(part, numbers, chosen, part.rollout_logp if exact else learner.logprobs(part))


def effect(learner: Learner, rows: Rows) -> Effect | None:
    """What an update did to these rows; None where a row has no token whose log-probabilities are numbers."""
    after = learner.logprobs(rows.part)
    mask = rows.part.response_mask & usable(rows.before, after)
    counts = mask.sum(1)
    if not bool(counts.all()):
        return None
    change = torch.where(mask, after - rows.before, 0.0)
    gained = dict(zip(rows.numbers, (change.sum(1) / counts).tolist(), strict=True))
    raised = {family: gained[up] > gained[down] for family, (up, down) in rows.chosen.items()}
    return Effect(raised, change[mask].abs().clamp(max=AT_MOST).mean().item())


def _chosen(batch: Batch, groups: Sequence[Group], turn: int) -> dict[str, tuple[int, int]]:
    """The rows with the largest and the smallest advantage, of the families whose turn it is; of those that have rows
    of both signs."""
    if batch.advantages is None:
        return {}
    counts = batch.response_mask.sum(1)
    advantage = (batch.advantages.sum(1) / counts.clamp(min=1)).tolist()
    families: dict[str, list[int]] = {}
    for row, (number, count) in enumerate(zip(batch.group.tolist(), counts.tolist(), strict=True)):
        if count:
            families.setdefault(groups[number].prompt.family, []).append(row)
    both = {}
    for family, rows in sorted(families.items()):
        up, down = max(rows, key=advantage.__getitem__), min(rows, key=advantage.__getitem__)
        if advantage[down] < 0 < advantage[up]:
            both[family] = (up, down)
    first = turn * FAMILIES % max(len(both), 1)
    names = [*both, *both][first : first + min(FAMILIES, len(both))]
    return {family: both[family] for family in names}
