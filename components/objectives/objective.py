"""The objective of one optimizer step, composed from one choice of each kind."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from components.config.exploration import KlCov
from components.config.objective import KlLoss, ObjectiveSettings
from components.objectives.controllers import Coefficients
from components.objectives.corrections import CORRECTIONS, off_policy_mask
from components.objectives.kl import KLS
from components.objectives.ratios import RATIOS
from components.objectives.tokens import TokenInputs, TokenLoss, usable


class Terms(NamedTuple):
    """The scalar to minimise (already weighted; micro-batches add up), and the per-token pieces behind it.

    ``rejected`` marks tokens whose loss a correction or mask set to 0, ``nonfinite`` those that were left out because
    one of their numbers is not finite; both are bool ``[B, R]``.
    """

    loss: Tensor
    tokens: TokenLoss
    rejected: Tensor
    nonfinite: Tensor


def objective(
    logp: Tensor,
    inputs: TokenInputs,
    settings: ObjectiveSettings,
    coefficients: Coefficients | None = None,
    entropy: Tensor | None = None,
) -> Terms:
    """ratio family x correction, aggregated, plus the KL term and the entropy bonus with the same aggregation.

    Masked positions are replaced before any arithmetic, so that whatever stands there (inf, NaN) changes nothing. A
    token that counts but has a number that is not finite is left out and reported; denominators stay. So the loss is
    finite whatever comes in.

    Args:
        logp: ``[B, R]`` of the current policy, with gradient.
        inputs: everything else that is known of the tokens.
        coefficients: of the KL term and the entropy bonus; the settings' own when absent.
        entropy: ``[B, R]`` of the current policy, with gradient; needed for an entropy bonus only.

    Raises:
        ValueError: log-probabilities in half precision, or something is missing that the settings need.
    """
    if logp.dtype in (torch.float16, torch.bfloat16):
        raise ValueError(f"log-probabilities in {logp.dtype}: their differences would be rounding noise; use fp32")
    coefficients = coefficients or Coefficients.initial(settings)
    bonus = _bonus(settings, coefficients, entropy)
    tokens, logp, nonfinite = finite_tokens(logp, _anchored(inputs), *([] if bonus is None else [bonus]))
    result = RATIOS.choose(settings.ratio)(logp, tokens)
    per_token, rejected = _corrected(result.loss, logp, tokens, settings)
    per_token = _selected(per_token, logp, tokens, settings)
    if isinstance(settings.kl, KlLoss):
        per_token = per_token + coefficients.kl * KLS[settings.kl.kind](logp, tokens)
    if bonus is not None:
        per_token = per_token - coefficients.entropy * torch.where(tokens.mask, bonus, 0.0)
    loss = torch.where(tokens.mask, per_token, 0.0) * tokens.weights
    return Terms(loss.sum(), result, rejected, nonfinite)


def _bonus(settings: ObjectiveSettings, coefficients: Coefficients, entropy: Tensor | None) -> Tensor | None:
    """The entropy, where it is rewarded."""
    if settings.entropy is None or not coefficients.entropy:
        return None
    if entropy is None:
        raise ValueError("the entropy bonus needs the entropy")
    return entropy


def _anchored(inputs: TokenInputs) -> TokenInputs:
    """Where a token was not drawn from the sampler's distribution there is no gap to it to be found or corrected."""
    if inputs.forced is None:
        return inputs
    return inputs._replace(rollout_logp=torch.where(inputs.forced, inputs.old_logp, inputs.rollout_logp))


def finite_tokens(logp: Tensor, inputs: TokenInputs, *others: Tensor) -> tuple[TokenInputs, Tensor, Tensor]:
    """Inputs and ``logp`` with 0 wherever a token does not count or is not usable, and which tokens were not.

    ``others`` are further arrays ``[B, R]`` that must be usable.
    """
    arrays = [logp, inputs.old_logp, inputs.rollout_logp, inputs.advantages]
    arrays += [] if inputs.ref_logp is None else [inputs.ref_logp]
    finite = usable(*arrays, *others)
    mask = inputs.mask & finite
    logp, old, rollout, advantages, *reference = (torch.where(mask, values, 0.0) for values in arrays)
    clean = inputs._replace(
        mask=mask,
        advantages=advantages,
        rollout_logp=rollout,
        old_logp=old,
        ref_logp=reference[0] if reference else None,
    )
    return clean, logp, inputs.mask & ~finite


def _corrected(
    per_token: Tensor, logp: Tensor, tokens: TokenInputs, settings: ObjectiveSettings
) -> tuple[Tensor, Tensor]:
    """The policy loss times the correction's weights, and the tokens that they removed."""
    rejected = torch.zeros_like(tokens.mask)
    if settings.correction is not None:
        weight = CORRECTIONS[settings.correction.kind](
            tokens.old_logp, tokens.rollout_logp, tokens.mask, settings.correction
        ).detach()
        per_token, rejected = per_token * weight, tokens.mask & (weight == 0)
    if settings.off_policy_mask is not None:
        kept = off_policy_mask(logp, tokens.rollout_logp, tokens.advantages, tokens.mask, settings.off_policy_mask)
        per_token, rejected = per_token * kept, rejected | (tokens.mask & (kept == 0))
    return per_token, rejected


def _selected(per_token: Tensor, logp: Tensor, tokens: TokenInputs, settings: ObjectiveSettings) -> Tensor:
    """Clip-Cov and top entropy: no loss outside the selection. KL-Cov: a penalty inside it."""
    if settings.selection is None:
        return per_token
    if tokens.selected is None:
        raise ValueError("the selection of tokens has not been made")
    if isinstance(settings.selection, KlCov):
        penalty = settings.selection.coef * (logp - tokens.old_logp).abs()
        return per_token + torch.where(tokens.selected, penalty, 0.0)
    return torch.where(tokens.selected, per_token, 0.0)
