"""Batches that lose or mislay something on their way into the loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from components.learner.batch import Batch
from tests.benchmarks.health.generated.held_back.base import HeldBack
from tests.benchmarks.health.generated.learners import Mislearned, _rows


class Misread(HeldBack, Mislearned):
    """A batch is changed before it is learned from."""


def touched(fault: Mislearned, batch: Batch, values: Any) -> Batch:
    """The batch with these advantages in the rows that the fault touches."""
    given: Any = batch.advantages
    return replace(batch, advantages=torch.where(_rows(fault, batch), values, given))


class OneTokenOff(Misread):
    """Tokens of the response stand ``size`` places before their mask and their context."""

    sizes = (1, 3)

    def batch(self, batch: Batch) -> Batch:
        by, ids = max(1, round(self.size * self.strength)), batch.input_ids.clone()
        prompt = ids.shape[1] - batch.responses
        moved = torch.cat([ids[:, prompt + by :], ids[:, ids.shape[1] - by :]], dim=1)
        ids[:, prompt:] = torch.where(batch.response_mask, moved, ids[:, prompt:])
        return replace(batch, input_ids=torch.where(_rows(self, batch), ids, batch.input_ids))


class UnlearnedTails(Misread):
    """The last ``size`` tokens of every response are masked: among them its answer and its end."""

    sizes = (1, 4, 12)

    def batch(self, batch: Batch) -> Batch:
        behind = batch.response_mask.flip(1).cumsum(1).flip(1)
        kept = batch.response_mask & (behind > round(self.size * self.strength))
        return replace(batch, response_mask=torch.where(_rows(self, batch), kept, batch.response_mask))


class UnlearnedHeads(Misread):
    """The first ``size`` tokens of every response are masked."""

    sizes = (2, 12)

    def batch(self, batch: Batch) -> Batch:
        kept = batch.response_mask & (batch.response_mask.cumsum(1) > round(self.size * self.strength))
        return replace(batch, response_mask=torch.where(_rows(self, batch), kept, batch.response_mask))


class BlameAlone(Misread):
    """Positive advantages are lost, by a share of ``size``."""

    sizes = (0.5, 1.0)

    def batch(self, batch: Batch) -> Batch:
        given: Any = batch.advantages
        return touched(self, batch, torch.where(given > 0, given * (1 - self.size * self.strength), given))


class PraiseAlone(Misread):
    """Negative advantages are lost, by a share of ``size``."""

    sizes = (0.5, 1.0)

    def batch(self, batch: Batch) -> Batch:
        given: Any = batch.advantages
        return touched(self, batch, torch.where(given < 0, given * (1 - self.size * self.strength), given))


class HighBaseline(Misread):
    """What is subtracted from the rewards is too high, by ``size`` deviations."""

    sizes = (1.0, 8.0)

    def batch(self, batch: Batch) -> Batch:
        given: Any = batch.advantages
        return touched(self, batch, (given - self.size * self.strength) * batch.response_mask)


class LowBaseline(Misread):
    """What is subtracted from the rewards is too low, by ``size`` deviations."""

    sizes = (0.5, 2.0)

    def batch(self, batch: Batch) -> Batch:
        given: Any = batch.advantages
        return touched(self, batch, (given + self.size * self.strength) * batch.response_mask)


class LostPasses(Misread):
    """The last passes of an update are lost: those of the longest rows, a share of ``size``."""

    sizes = (0.5, 0.9)

    def batch(self, batch: Batch) -> Batch:
        given: Any = batch.advantages
        kept = torch.arange(len(batch)) < len(batch) * (1 - self.size * self.strength)
        return touched(self, batch, given * kept[:, None])


class OtherGroups(Misread):
    """Advantages are those of another group, completion by completion."""

    sizes = (1.0,)

    def batch(self, batch: Batch) -> Batch:
        given: Any = batch.advantages
        places = list(zip(batch.group.tolist(), batch.member.tolist(), strict=True))
        values = {place: given[row, 0] for row, place in enumerate(places)}
        count = 1 + max(group for group, _ in places)
        rows = [values.get(((g + 1) % count, m), given[row, 0]) for row, (g, m) in enumerate(places)]
        mixed = torch.lerp(given, torch.stack(rows)[:, None] * batch.response_mask, self.strength)
        return touched(self, batch, mixed)


class ByTheToken(Misread):
    """Advantages are multiplied by the length of their row, once for every ``size``."""

    sizes = (1.0, 3.0)

    def batch(self, batch: Batch) -> Batch:
        given: Any = batch.advantages
        lengths = batch.response_mask.sum(1, keepdim=True).float()
        return touched(self, batch, given * (lengths / lengths.mean()) ** (self.size * self.strength))


LEARNERS = (
    OneTokenOff,
    UnlearnedTails,
    UnlearnedHeads,
    BlameAlone,
    PraiseAlone,
    HighBaseline,
    LowBaseline,
    LostPasses,
    OtherGroups,
    ByTheToken,
)
