"""Direct preference optimisation: the reward is implicit in how far the policy has moved (2305.18290).

With g(y) = sum over y's tokens of log pi - log ref, the implicit reward is beta g(y), and the margin of a pair is
beta (g(chosen) - g(rejected)). The loss is -log sigma(margin).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from components.config.dpo import DpoSettings


class Side(NamedTuple):
    """One completion of every pair, all ``[N, R]``: log-probabilities in fp32 nats, and which tokens count (bool)."""

    logp: Tensor
    ref_logp: Tensor
    mask: Tensor


class SideSums(NamedTuple):
    """One completion of every pair, all ``[N]``."""

    logp: Tensor  # of the whole completion
    change: Tensor  # from the reference's
    reward: Tensor  # the implicit one


class DpoTerms(NamedTuple):
    """The scalar to minimise (already weighted; micro-batches add up), and what is behind it for every pair."""

    loss: Tensor
    losses: Tensor  # [N]
    chosen: SideSums
    rejected: SideSums

    @property
    def margins(self) -> Tensor:
        """Implicit reward of the chosen minus that of the rejected, ``[N]``."""
        return self.chosen.reward - self.rejected.reward


def dpo(chosen: Side, rejected: Side, weights: Tensor, settings: DpoSettings) -> DpoTerms:
    """The loss of N pairs. ``weights [N]`` are those of the whole optimizer batch, so that any split adds up to it.

    Label smoothing e takes a share e of the labels to be wrong (conservative DPO): the loss is
    -(1 - e) log sigma(margin) - e log sigma(-margin), least at the margin log((1 - e) / e) and not at infinity.
    Length normalisation takes the mean over a completion's tokens for their sum, so that length alone earns nothing
    (2411.15124).
    """
    won, lost = _sums(chosen, settings), _sums(rejected, settings)
    margins = won.reward - lost.reward
    smoothing = settings.label_smoothing
    losses = -(1 - smoothing) * logsigmoid(margins) - smoothing * logsigmoid(-margins)
    return DpoTerms((losses * weights).sum(), losses, won, lost)


def _sums(side: Side, settings: DpoSettings) -> SideSums:
    """Masked places are replaced before any arithmetic, so that whatever stands there (inf, NaN) changes nothing."""
    logp, ref_logp = (torch.where(side.mask, values, 0.0) for values in (side.logp, side.ref_logp))
    change = (logp - ref_logp).sum(1)  # the difference first: it is small, the sums are not
    tokens = side.mask.sum(1).clamp(min=1) if settings.length_normalised else 1
    return SideSums(logp.sum(1), change, settings.beta * change / tokens)
