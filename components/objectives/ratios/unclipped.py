"""Families in which no token loses its gradient, so that none counts as clipped."""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.ratios import CispoRatio, DroRatio, SapoRatio, ToprRatio, VespoRatio
from components.objectives.tokens import MAX_LOG_RATIO, TokenInputs, TokenLoss, log_ratio, mean_per_sequence


def cispo(logp: Tensor, tokens: TokenInputs, settings: CispoRatio) -> TokenLoss:
    """-sg(clip(r, floor, cap)) A log pi (2506.13585): the weight is clipped, every token keeps its gradient.

    At r = 1 the weight is exactly 1, whatever the cap. The value of this loss depends on log pi and has no meaning;
    only its gradient has.
    """
    anchor = tokens.old_logp if settings.anchor == "old" else tokens.rollout_logp
    weight = log_ratio(logp, anchor).detach().exp()
    return _unclipped(-weight.clamp(settings.floor, settings.cap) * tokens.advantages * logp, weight)


def sapo(logp: Tensor, tokens: TokenInputs, settings: SapoRatio) -> TokenLoss:
    """-f(r) A with f(r) = (4 / tau) sigmoid(tau (r - 1)), a smooth gate in place of the clip (2511.20347).

    tau depends on the sign of A. The slope at r = 1 is 1.
    """
    ratio = log_ratio(logp, tokens.old_logp).exp()
    tau = torch.where(tokens.advantages > 0, settings.tau_positive, settings.tau_negative)
    return _unclipped(-4 / tau * torch.sigmoid(tau * (ratio - 1)) * tokens.advantages, ratio)


def vespo(logp: Tensor, tokens: TokenInputs, settings: VespoRatio) -> TokenLoss:
    """-phi(W) A log pi, phi(W) = W^k e^(lambda (1 - W)), W the product of the sequence's ratios pi / pi_old.

    The sequence's own importance weight, reshaped so that it dies out on both sides (2602.10693): phi(1) = 1, its
    maximum is at k / lambda, and it goes to 0 for very likely and very unlikely sequences. k and lambda depend on the
    sign of A. No gradient flows through phi; the value has no meaning.
    """
    total = mean_per_sequence(logp.detach() - tokens.old_logp, tokens.mask) * tokens.mask.sum(1, keepdim=True)
    total = total.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).expand_as(logp)
    good = tokens.advantages > 0
    k = torch.where(good, settings.k_positive, settings.k_negative)
    decay = torch.where(good, settings.lambda_positive, settings.lambda_negative)
    weight = (k * total + decay * (1 - total.exp())).exp()
    return _unclipped(-weight * tokens.advantages * logp, total.exp())


def topr(logp: Tensor, tokens: TokenInputs, settings: ToprRatio) -> TokenLoss:
    """-w A log pi with w = 1 where A > 0, min(r, cap) where A < 0; r = pi / pi_old. No gradient flows through w.

    Tapered off-policy REINFORCE (2503.14286): what was good is imitated, what was bad forgotten while likely. As with
    CISPO the value has no meaning.
    """
    ratio = log_ratio(logp, tokens.old_logp).detach().exp()
    weight = torch.where(tokens.advantages > 0, 1.0, ratio.clamp(max=settings.cap))
    return _unclipped(-weight * tokens.advantages * logp, ratio)


def dro(logp: Tensor, tokens: TokenInputs, settings: DroRatio) -> TokenLoss:
    """-(A log pi - beta / 2 (log pi - log pi_old)^2): on the same batch a token comes to rest at A / beta nats.

    A quadratic price on every token's move in place of a clip (2405.19107; per token, as verl and Tinker do).
    """
    loss = -tokens.advantages * logp + settings.beta / 2 * (logp - tokens.old_logp).square()
    return _unclipped(loss, log_ratio(logp, tokens.old_logp).exp())


def _unclipped(loss: Tensor, ratio: Tensor) -> TokenLoss:
    nothing = torch.zeros_like(loss, dtype=torch.bool)
    return TokenLoss(loss, nothing, nothing, ratio)
