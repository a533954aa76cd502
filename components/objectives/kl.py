"""KL(policy || reference) per token, from log-probabilities of sampled tokens (nats).

With l = log pi - log ref: k1 = l, k2 = l^2 / 2, k3 = e^-l - 1 + l. Value and gradient are two questions (2512.21852).
The gradient of k2 is that of the reverse KL on policy; k3 has the better value, but the gradient of the forward KL; k1
has no gradient in expectation as a loss, and the right one in the reward. All take ``logp`` and `TokenInputs`.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from components.objectives.tokens import MAX_LOG_RATIO, TokenInputs, log_ratio


def estimate_k3(logp: Tensor, ref_logp: Tensor) -> Tensor:
    """e^-l - 1 + l: unbiased, never negative; for logging.

    l is clamped below, at -20: there the value is about 4.9e8 and the gradient 0. Above, nothing can overflow.
    """
    difference = (logp - ref_logp).clamp(min=-MAX_LOG_RATIO)
    return (-difference).expm1() + difference  # exp() - 1 would round to less than 0 where l is small


def k2(logp: Tensor, tokens: TokenInputs) -> Tensor:
    """l^2 / 2: biased value, right gradient on policy, and one that never dies: far away it is l."""
    return (logp - _reference(tokens)).square() / 2


def k3(logp: Tensor, tokens: TokenInputs) -> Tensor:
    """Right value, gradient of the forward KL(ref || pi). What most frameworks call the KL loss."""
    return estimate_k3(logp, _reference(tokens))


def k3_straight_through(logp: Tensor, tokens: TokenInputs) -> Tensor:
    """The value of k3 with the gradient of k2."""
    return _with_gradient_of(k2(logp, tokens), k3(logp, tokens))


def k3_ratio(logp: Tensor, tokens: TokenInputs) -> Tensor:
    """r k3 with r = pi / pi_old and gradient through both (2512.02556): right value and gradient, off policy too.

    The product rule gives r (k3 + 1 - e^-l) = r l, in which e^-l cancels. It is computed as r l: with the terms apart
    their rounding, and any clamp, would push a policy that is far below the reference still further away.
    """
    ratio = log_ratio(logp, tokens.old_logp).exp().detach()
    return _with_gradient_of(ratio * k2(logp, tokens), ratio * k3(logp, tokens))


def _with_gradient_of(surrogate: Tensor, value: Tensor) -> Tensor:
    return surrogate + (value - surrogate).detach()


def _reference(tokens: TokenInputs) -> Tensor:
    if tokens.ref_logp is None:
        raise ValueError("the KL term needs ref_logp")
    return tokens.ref_logp


KLS: dict[str, Callable[..., Tensor]] = {
    "k2": k2,
    "k3": k3,
    "k3_straight_through": k3_straight_through,
    "k3_ratio": k3_ratio,
}
