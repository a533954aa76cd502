"""Whether an update did what it was made for: it raises the probability of what had a positive advantage.

A first-order check on a few rows of the batch, by family: the rows with the largest advantages of either sign are
scored again after the update. It needs no knowledge of the loss, so it finds a sign that is wrong anywhere in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from components.learner import Batch, Learner
from components.objectives.kl import estimate_k3
from components.objectives.tokens import usable
from components.types import Group

ROWS = 2
"""Rows of each sign and family that are scored again; in the demo 16 of 256, one hundredth of a step."""
FAMILIES = 4
"""Families that are looked at: those with the most to learn."""


class Effect(NamedTuple):
    """By family, whether rows with positive advantages have gained more than rows with negative ones; and how far the
    update has moved the policy on these rows: k3 estimate of KL(before || after), nats per token."""

    raised: dict[str, bool]
    moved: float


@dataclass(frozen=True)
class Rows:
    """Some rows of a batch, by family those with the largest advantages and those with the smallest, and their
    log-probabilities ``[B, R]`` before the update."""

    part: Batch
    numbers: Sequence[int]
    chosen: Mapping[str, tuple[list[int], list[int]]]
    before: Tensor


def rows_of(learner: Learner, batch: Batch, groups: Sequence[Group], *, exact: bool) -> Rows | None:
    """The rows that are looked at, before the update; None where no family has rows of both signs.

    Args:
        batch: what is learned from.
        groups: what the batch was made of.
        exact: the sampler's log-probabilities are the learner's, so these need not be computed.
    """
    chosen = _chosen(batch, groups)
    if not chosen:
        return None
    numbers = sorted({row for pair in chosen.values() for side in pair for row in side})
    part = batch.rows(torch.tensor(numbers))
    return Rows(part, numbers, chosen, part.rollout_logp if exact else learner.logprobs(part))


def effect(learner: Learner, rows: Rows) -> Effect | None:
    """What an update did to these rows; None where a row has no token whose log-probabilities are numbers."""
    after = learner.logprobs(rows.part)
    mask = rows.part.response_mask & usable(rows.before, after)
    counts = mask.sum(1)
    if not bool(counts.all()):
        return None
    gained = torch.where(mask, after - rows.before, 0.0).sum(1) / counts
    of_row = dict(zip(rows.numbers, gained.tolist(), strict=True))
    raised = {family: _mean(of_row, up) > _mean(of_row, down) for family, (up, down) in rows.chosen.items()}
    return Effect(raised, estimate_k3(rows.before, after)[mask].mean().item())


def _mean(of_row: dict[int, float], rows: Sequence[int]) -> float:
    return sum(of_row[row] for row in rows) / len(rows)


def _chosen(batch: Batch, groups: Sequence[Group]) -> dict[str, tuple[list[int], list[int]]]:
    """By family, the rows with the largest advantages, and with the smallest; families that have both."""
    if batch.advantages is None:
        return {}
    counts = batch.response_mask.sum(1)
    advantage = batch.advantages.sum(1) / counts.clamp(min=1)
    families: dict[str, list[int]] = {}
    for row, number in enumerate(batch.group.tolist()):
        if counts[row]:
            families.setdefault(groups[number].prompt.family, []).append(row)
    found = {family: _extremes(advantage, rows) for family, rows in families.items()}
    both = {family: pair for family, pair in found.items() if all(pair)}
    weight = {family: sum(abs(float(advantage[row])) for side in pair for row in side) for family, pair in both.items()}
    return {family: both[family] for family in sorted(both, key=lambda name: (-weight[name], name))[:FAMILIES]}


def _extremes(advantage: Tensor, rows: Sequence[int]) -> tuple[list[int], list[int]]:
    order = sorted(rows, key=lambda row: float(advantage[row]))
    return [r for r in order[-ROWS:] if advantage[r] > 0], [r for r in order[:ROWS] if advantage[r] < 0]
