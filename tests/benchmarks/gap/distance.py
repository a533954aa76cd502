"""How far sampler and learner are apart in one step, per token, and what a correction makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import torch
from torch import Tensor

from components.config.corrections import Correction
from components.learner import torch_learner
from components.learner.batch import Batch
from components.objectives.corrections import CORRECTIONS, importance
from components.objectives.kl import estimate_k3

Distance = dict[str, float]


def distance(old_logp: Tensor, rollout_logp: Tensor, mask: Tensor, correction: Correction | None) -> Distance:
    """Figures of one step's tokens; log-probabilities ``[B, R]`` in nats, of the learner and of the sampler.

    ``k1`` and ``k3`` estimate KL(sampler || learner) from the sampler's tokens; ``ess`` is the effective share of the
    tokens under the uncorrected weights pi_learner / pi_sampler, ``ess_corrected`` under those of the correction, and
    ``cut`` the share of tokens whose weight it cut to a cap or to 0.
    """
    gap = (old_logp - rollout_logp)[mask].double()
    raw = importance(old_logp, rollout_logp)
    weights = raw if correction is None else CORRECTIONS[correction.kind](old_logp, rollout_logp, mask, correction)
    cap = getattr(correction, "cap", float("inf"))
    kept = weights[mask]
    return {
        "tokens": float(gap.numel()),
        "mean": gap.abs().mean().item(),
        "p99": gap.abs().quantile(0.99).item(),
        "max": gap.abs().max().item(),
        "k1": -gap.mean().item(),
        "k3": estimate_k3(rollout_logp, old_logp)[mask].mean().item(),
        "ess": _effective(raw[mask]),
        "ess_corrected": 1.0 if correction is None else _effective(kept),
        "cut": 0.0 if correction is None else ((kept == 0) | (kept >= cap)).double().mean().item(),
    }


def _effective(weights: Tensor) -> float:
    """(sum w)^2 / (n sum w^2), of 0 to 1; 0 where nothing is left."""
    weights = weights.double()
    total = weights.square().sum()
    return (weights.sum().square() / (len(weights) * total)).item() if total > 0 else 0.0


@contextmanager
def noted(correction: Correction | None) -> Iterator[list[Distance]]:
    """Collects the distance of every step that the learner of this process makes."""
    steps: list[Distance] = []
    signals = torch_learner.mismatch_signals

    def note(batch: Batch, own: Correction | None) -> dict[str, float]:
        assert batch.old_logp is not None
        with torch.no_grad():
            steps.append(distance(batch.old_logp, batch.rollout_logp, batch.response_mask, correction))
        return signals(batch, own)

    with mock.patch.object(torch_learner, "mismatch_signals", note):
        yield steps
