"""DPPO: the trust region bounds a token's probability, not its ratio, around the sampler's policy mu (2602.04879).

A token that was rare may double without harm; one that was likely may not lose a third. A token loses its gradient when
it is outside and its advantage would lead further out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.ratios import DppoKlRatio, DppoTvRatio
from components.objectives.tokens import TokenInputs, TokenLoss, log_ratio

TINY = 1e-7
"""Probabilities are kept this far from 0 and 1 before their logarithm is taken."""


def dppo_tv(logp: Tensor, tokens: TokenInputs, settings: DppoTvRatio) -> TokenLoss:
    """Outside when |pi - mu| > delta."""
    distance = (logp.detach().exp() - tokens.rollout_logp.exp()).abs()
    return _masked(logp, tokens, distance > settings.delta, settings.cap)


def dppo_kl(logp: Tensor, tokens: TokenInputs, settings: DppoKlRatio) -> TokenLoss:
    """Outside when the KL of the two Bernoulli distributions "this token or another", KL(mu || pi), exceeds delta."""
    policy = logp.detach().exp().clamp(TINY, 1 - TINY)
    sampler = tokens.rollout_logp.exp().clamp(TINY, 1 - TINY)
    other = (1 - sampler) * ((1 - sampler).log() - (1 - policy).log())
    return _masked(logp, tokens, sampler * (sampler.log() - policy.log()) + other > settings.delta, settings.cap)


def _masked(logp: Tensor, tokens: TokenInputs, outside: Tensor, cap: float) -> TokenLoss:
    """-r A with r = pi / mu, gradient weight min(r, cap), where the token is inside or on its way back."""
    ratio = log_ratio(logp, tokens.rollout_logp).exp()
    above = logp.detach() > tokens.rollout_logp
    high = outside & above & (tokens.advantages > 0)
    low = outside & ~above & (tokens.advantages < 0)
    weight = (cap / ratio.detach()).clamp(max=1.0) * ratio
    return TokenLoss(torch.where(high | low, 0.0, -weight * tokens.advantages), low, high, ratio)
