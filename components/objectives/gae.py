"""Advantages from a critic: generalised advantage estimation over the tokens that the policy sampled.

An episode is one completion; an action is one *sampled* token. ``mask [B, R]`` (bool) is False for padding and for what
a tool wrote: such tokens are skipped, neither discounted nor bootstrapped from, and get advantage 0. What stands there
(inf, NaN) changes nothing. ``values [B, R]`` are those of the state *before* each token.

A completion that hits the length limit ends like any other: the limit is part of the task and the reward was given for
the text as it is, so nothing is bootstrapped behind the last token (termination, not truncation).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from components.config.ppo import GaeAdvantage


class Gae(NamedTuple):
    """``advantages`` for the policy and ``returns``, the targets of the critic; both ``[B, R]`` fp32, 0 if masked."""

    advantages: Tensor
    returns: Tensor


class Credit(NamedTuple):
    """What a batch teaches: ``advantages`` and ``returns`` ``[B, R]`` fp32, and how they came about."""

    advantages: Tensor
    returns: Tensor
    metrics: dict[str, float]


def gae(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float | Tensor) -> Gae:
    """A_t = sum of (gamma lam)^l delta_t+l, delta_t = r_t + gamma V_t+1 - V_t; return A_t + V_t (1506.02438).

    Args:
        rewards: reward of each token, ``[B, R]``; rewards of masked tokens do not count.
        values: critic's values, ``[B, R]``.
        mask: the sampled tokens, ``[B, R]``.
        gamma: discount per sampled token.
        lam: one decay for all, or one per row, ``[B]``.
    """
    rewards, values = (torch.where(mask, x.float(), 0.0) for x in (rewards, values))
    advantage = next_value = values.new_zeros(len(values))
    columns = []
    for r, v, m in zip(*(x.unbind(1)[::-1] for x in (rewards, values, mask)), strict=True):
        advantage = torch.where(m, r + gamma * next_value - v + gamma * lam * advantage, advantage)
        next_value = torch.where(m, v, next_value)
        columns.append(torch.where(m, advantage, 0.0))
    advantages = torch.stack(columns[::-1], dim=1) if columns else torch.zeros_like(values)
    return Gae(advantages, advantages + values)


def terminal_rewards(rewards: Tensor, mask: Tensor) -> Tensor:
    """One reward per row ``[B]`` put at its last sampled token, ``[B, R]``. A row without one carries none."""
    last = mask & (mask.flip(1).cumsum(1).flip(1) == 1)
    return torch.where(last, rewards.float()[:, None], 0.0)


def adaptive_lambda(lengths: Tensor, alpha: float) -> Tensor:
    """1 - 1 / (alpha l) for rows of l sampled tokens, never below 0: longer answers look further (2504.05118)."""
    return (1 - 1 / (alpha * lengths.clamp(min=1))).clamp(min=0)


def whiten(advantages: Tensor, mask: Tensor, eps: float = 1e-8) -> Tensor:
    """Mean 0 and (population) variance 1 over the sampled tokens of the batch; equal advantages become exactly 0."""
    found = advantages[mask]
    if not len(found) or found.min() == found.max():
        return torch.zeros_like(advantages)
    scale = (found.var(correction=0) + eps).rsqrt()
    return torch.where(mask, (advantages - found.mean()) * scale, 0.0)


def explained_variance(returns: Tensor, values: Tensor, mask: Tensor) -> float:
    """1 - Var(R - V) / Var(R) over the sampled tokens: 1 is a perfect critic, 0 no better than a constant.

    Where returns do not vary (or there are none) there is nothing to explain, and it is 0.
    """
    r, v = returns[mask].double(), values[mask].double()
    spread = r.var(correction=0).item() if len(r) else 0.0
    return 1 - (r - v).var(correction=0).item() / spread if spread > 0 else 0.0


def value_weights(mask: Tensor) -> Tensor:
    """The weight of every token in the value loss, ``[B, R]``: all sampled tokens of the batch count the same."""
    return mask.float() / mask.sum().clamp(min=1)


def value_loss(values: Tensor, returns: Tensor, old_values: Tensor, weights: Tensor, clip: float | None) -> Tensor:
    """Sum of weights x max((V - R)^2, (clip(V, old - c, old + c) - R)^2) / 2 (1707.06347); no clip is the first alone.

    All ``[B, R]``. ``weights`` are made once for the whole optimizer batch (`value_weights`), so that micro-batches add
    up to the same gradient under any split.
    """
    used = weights > 0
    values, returns, old_values = (torch.where(used, x, 0.0) for x in (values, returns, old_values))
    error = (values - returns).square()
    if clip is not None:
        near = old_values + (values - old_values).clamp(-clip, clip)
        error = torch.maximum(error, (near - returns).square())
    return (weights * error).sum() / 2


def mean_reward(rewards: Tensor, scorable: Tensor, groups: Tensor, of: str) -> Tensor:
    """Mean reward ``of`` the batch or of each row's group, ``[B]``, over completions that could be scored."""
    groups = torch.zeros_like(groups) if of == "batch" else groups
    same = (groups[:, None] == groups[None, :]) & scorable[None, :]
    return (same * torch.where(scorable, rewards.float(), 0.0)).sum(1) / same.sum(1).clamp(min=1)


def credit(
    rewards: Tensor, scorable: Tensor, groups: Tensor, mask: Tensor, values: Tensor, settings: GaeAdvantage
) -> Credit:
    """Advantages and the critic's targets of one batch.

    The critic's lambda and the policy's are apart (VC-PPO, 2503.01491). While the critic, which has not seen this
    batch, explains nothing of its Monte-Carlo returns, the advantage is reward minus mean reward (EVPO, 2604.19485);
    the critic learns on. Whitening comes last and never touches the returns.

    Args:
        rewards: reward of each completion, ``[B]``; where it could not be scored, whatever stands there is not read.
        scorable: which completions have a reward, ``[B]``; it counts in a mean reward even if its tokens are masked.
        groups: number of each completion's group, ``[B]``.
        mask: sampled tokens that take part in the loss, ``[B, R]``; none in rows that could not be scored.
        values: the critic's, before it learns from this batch, ``[B, R]``.
        settings: gamma, the lambdas, whitening and the fallback.
    """
    at_end = terminal_rewards(rewards, mask)
    lam = settings.policy_lambda
    policy_lambda = adaptive_lambda(mask.sum(1), settings.adaptive_alpha) if lam == "adaptive" else lam
    returns = gae(at_end, values, mask, settings.gamma, settings.critic_lambda).returns
    advantages = gae(at_end, values, mask, settings.gamma, policy_lambda).advantages
    explained = explained_variance(gae(at_end, values, mask, settings.gamma, 1.0).returns, values, mask)
    if fallen := settings.fallback is not None and explained <= 0:
        centred = rewards - mean_reward(rewards, scorable, groups, settings.fallback or "batch")
        advantages = torch.where(mask, centred[:, None], 0.0)
    if settings.whiten:
        advantages = whiten(advantages, mask)
    return Credit(advantages, returns, {"explained_variance": explained, "critic_fallback": float(fallen)})
