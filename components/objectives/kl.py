"""KL(policy || reference) as a loss term per token, from log-probabilities of sampled tokens (nats).

With l = log pi - log ref: the *gradient* of k2 = l^2 / 2 is that of the reverse KL on policy; k3 = e^-l - 1 + l has the
better value but the gradient of the forward KL (2512.21852).
"""

from __future__ import annotations

from torch import Tensor

from components.objectives.ratios import MAX_LOG_RATIO


def k2(logp: Tensor, ref_logp: Tensor) -> Tensor:
    """l^2 / 2: biased value, right gradient."""
    return (logp - ref_logp).square() / 2


def k3(logp: Tensor, ref_logp: Tensor) -> Tensor:
    """e^-l - 1 + l: unbiased, never negative; for logging."""
    log_ratio = (logp - ref_logp).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return (-log_ratio).exp() - 1 + log_ratio


def k3_straight_through(logp: Tensor, ref_logp: Tensor) -> Tensor:
    """The value of k3 with the gradient of k2."""
    surrogate = k2(logp, ref_logp)
    return surrogate + (k3(logp, ref_logp) - surrogate).detach()


KLS = {"k2": k2, "k3_straight_through": k3_straight_through}
