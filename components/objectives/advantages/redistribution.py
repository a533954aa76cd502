"""RREDCoT, reward redistribution over the chain of thought (2606.06475): which segment changed the outlook?

The value v of a prefix is what it may be expected to be worth in the end; a segment's credit is the change of v over
it, and all credits add up to the outcome minus the value of the prompt. v is estimated without a single new sample:
other completions of the prompt, whose worth is known, are scored: how likely their rest would be as a continuation.

The idea and `log_value` are the paper's. How v is normalised, how credits become weights, and all defaults are our
reading: the paper's text was not at hand.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

EPS = 0.01
"""Added to the standard deviation of credits: changes of v by a hundredth are noise and must not be blown up."""


def log_value(log_weights: Tensor, utility: Tensor) -> Tensor:
    """log of (1/N) sum_j w_j zeta_j over the last dimension, in double precision; -inf where the sum is 0.

    With w_j = p(continuation j | prefix) and distinct continuations it never exceeds the prefix's true value.

    Args:
        log_weights: nats, ``[..., N]``; hundreds of nats below 0 are usual and do not underflow.
        utility: worth of the completion that each continuation comes from, 0 or more, ``[N]``.
    """
    return torch.logsumexp(log_weights.double() + utility.double().log(), -1) - math.log(len(utility))


def value(log_weights: Tensor, utility: Tensor) -> Tensor:
    """v as a weighted mean of the utilities: sum_j w_j zeta_j / sum_j w_j.

    This is `log_value` relative to what it would be if every continuation were worth 1. Alone it is as small as a long
    text is unlikely, e^-100, and next to an outcome of 1 all credit would fall to the last segment. A weight that is
    not a finite number does not count; where none is left, v is the plain mean.
    """
    log_weights = torch.where(log_weights.isfinite(), log_weights.double(), -torch.inf)
    relative = (log_value(log_weights, utility) - log_value(log_weights, torch.ones_like(utility))).exp()
    return torch.where(log_weights.isfinite().any(-1), relative, utility.double().mean())


def telescope(values: Tensor) -> Tensor:
    """v after each segment minus v before it: ``[S + 1]`` values, from the prompt's to the outcome, give ``[S]``."""
    return values.diff(dim=-1)


def segment_weights(credit: Tensor, tokens: Tensor, advantage: float, strength: float) -> Tensor:
    """What multiplies the advantage of each segment's tokens, ``[S]``; its mean over the tokens is 1.

    1 + strength x the standardised credit, within [0, 2], divided by its mean. A negative advantage goes to where the
    outlook fell, so there the credit changes sign. Means and deviations are over tokens: a segment of one token could
    otherwise scale all the others. Equal credits give exactly 1, which is GRPO. At strength 0.5 no weight exceeds 2.14.

    Args:
        credit: ``[S]``.
        tokens: number of tokens of each segment that count in the loss, ``[S]``.
        advantage: of the completion.
        strength: change of the weight per standard deviation.
    """
    ones = torch.ones(credit.shape, dtype=torch.float64)
    if not tokens.sum() or not len(credit) or credit.max() == credit.min():
        return ones
    share = tokens.double() / tokens.sum()
    signed = credit.double() * (1 if advantage > 0 else -1)
    centred = signed - (share * signed).sum()
    std = (share * centred.square()).sum().sqrt()
    found = (ones + strength * centred / (std + EPS)).clamp(0, 2)
    return found / (share * found).sum()
