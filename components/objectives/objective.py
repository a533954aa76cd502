"""The objective of one optimizer step, composed from one choice of each kind."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from components.config.objective import ObjectiveSettings
from components.objectives.corrections import CORRECTIONS
from components.objectives.kl import KLS
from components.objectives.ratios import RATIOS, TokenLoss


class Terms(NamedTuple):
    """The scalar to minimise (already weighted; micro-batches add up), and the per-token pieces behind it."""

    loss: Tensor
    tokens: TokenLoss


class TokenInputs(NamedTuple):
    """What the objective needs of a (micro-)batch, all ``[B, R]``; ``weights`` come from the aggregation."""

    mask: Tensor
    weights: Tensor
    advantages: Tensor
    rollout_logp: Tensor
    old_logp: Tensor
    ref_logp: Tensor | None


def objective(logp: Tensor, inputs: TokenInputs, settings: ObjectiveSettings) -> Terms:
    """ratio family x correction, aggregated, plus the KL term with the same aggregation.

    Masked positions are replaced before any arithmetic, so that whatever stands there (inf, NaN) changes nothing.
    """
    mask = inputs.mask
    logp, old, rollout, advantages = (
        torch.where(mask, values, 0.0) for values in (logp, inputs.old_logp, inputs.rollout_logp, inputs.advantages)
    )
    tokens = RATIOS[settings.ratio.kind](logp, old, advantages, settings.ratio)
    per_token = tokens.loss
    if settings.correction is not None:
        per_token = per_token * CORRECTIONS[settings.correction.kind](old, rollout, settings.correction)
    if settings.kl is not None:
        if inputs.ref_logp is None:
            raise ValueError("the KL term needs ref_logp")
        reference = torch.where(mask, inputs.ref_logp, 0.0)
        per_token = per_token + settings.kl.beta * KLS[settings.kl.kind](logp, reference)
    return Terms((per_token * inputs.weights).sum(), tokens)
