"""What each token is to be praised or blamed for: scored groups -> advantages ``[B, R]``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from components.config.advantages import RredcotRedistribution
from components.config.objective import KlReward, ObjectiveSettings
from components.config.ppo import GaeAdvantage
from components.learner.base import Learner
from components.learner.batch import Batch, batch_of_rows
from components.learner.critic import Critic
from components.objectives.advantages import ADVANTAGES, Rewards, cap, rewards_of
from components.objectives.gae import credit
from components.objectives.tokens import usable
from components.policy import Policy
from components.training.redistribute import Row, redistribute
from components.types import Group

Signals = dict[str, float]


class Credited(NamedTuple):
    """A batch with its advantages, and the signals of how they came about."""

    batch: Batch
    signals: Signals


@dataclass(frozen=True)
class Credit:
    """Advantages from the groups' rewards, or from the critic where the settings name one; it then learns too.

    ``policy`` lends its tokenizer; its weights are not used.
    """

    learner: Learner
    critic: Critic | None
    policy: Policy
    settings: ObjectiveSettings

    def assign(self, batch: Batch, groups: Sequence[Group], step: int) -> Credited:
        """``batch`` is made of ``groups``, and has ``ref_logp`` when KL is part of the reward."""
        rewards = rewards_of(groups, step)
        if isinstance(self.settings.kl, KlReward):
            batch = replace(batch, old_logp=self.learner.logprobs(batch))
            rewards = charge_kl(rewards, batch, self.learner.coefficients.kl)
        if isinstance(self.settings.advantage, GaeAdvantage):
            return self._from_critic(batch, rewards, self.settings.advantage)
        return self._from_groups(batch, groups, rewards)

    def _from_groups(self, batch: Batch, groups: Sequence[Group], rewards: Rewards) -> Credited:
        advantages = ADVANTAGES.choose(self.settings.advantage)(rewards)
        signals: Signals = {}
        if (limit := self.settings.advantage_cap) is not None:
            advantages, signals["advantage_capped"] = cap(advantages, limit)
        per_token = advantages[batch.group, batch.member][:, None].expand(batch.response_mask.shape)
        if self.settings.redistribution is not None:
            factors, found = self._factors(batch, groups, advantages, self.settings.redistribution)
            per_token, signals = per_token * factors, signals | found
        return Credited(replace(batch, advantages=torch.where(batch.response_mask, per_token, 0.0)), signals)

    def _from_critic(self, batch: Batch, rewards: Rewards, settings: GaeAdvantage) -> Credited:
        """Advantages by the critic's values from before it learns from this batch."""
        if self.critic is None:
            raise ValueError("objective.advantage.kind gae needs a critic")
        rows = batch.group, batch.member
        values = self.critic.values(batch)
        found = credit(rewards.total[rows], rewards.scorable[rows], batch.group, batch.response_mask, values, settings)
        learned = self.critic.step(batch, found.returns, values)
        return Credited(replace(batch, advantages=found.advantages), {**found.metrics, **learned})

    def _factors(
        self, batch: Batch, groups: Sequence[Group], advantages: Tensor, settings: RredcotRedistribution
    ) -> tuple[Tensor, Signals]:
        """What multiplies the advantage of every token, ``[B, R]``."""
        found = redistribute(groups, advantages, self._score_rows, self.policy.decode, settings)
        return found.factors[batch.group, batch.member][:, : batch.responses], found.metrics

    def _score_rows(self, rows: Sequence[Row]) -> Tensor:
        """log p(continuation | context) of each row under the learner's present weights (nats)."""
        batch = batch_of_rows(rows, self.policy.pad_id)
        return torch.where(batch.response_mask, self.learner.logprobs(batch), 0.0).sum(1)


def charge_kl(rewards: Rewards, batch: Batch, beta: float) -> Rewards:
    """Rewards minus beta times the completion's k1, the sum over its tokens of log pi_old - log pi_ref (nats).

    A token that has no such number (see `usable`) costs nothing.
    """
    if batch.old_logp is None or batch.ref_logp is None:
        raise ValueError("KL in the reward needs old_logp and ref_logp")
    known = batch.response_mask & usable(batch.old_logp, batch.ref_logp)
    k1 = torch.where(known, batch.old_logp - batch.ref_logp, 0.0).sum(1)
    charge = torch.zeros_like(rewards.total)
    charge[batch.group, batch.member] = -beta * k1
    charge = torch.where(rewards.scorable, charge, 0.0)
    return rewards._replace(total=rewards.total + charge, parts={**rewards.parts, "kl": charge})
