"""A batch as the objective takes it, and which of its rows have a gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.exploration import KlCov
from components.config.objective import ObjectiveSettings
from components.learner.batch import Batch
from components.objectives.controllers import Coefficients
from components.objectives.ratios import RATIOS
from components.objectives.tokens import TokenInputs


def advantages_of(batch: Batch) -> Tensor:
    """The advantages of a batch that has them."""
    if batch.advantages is None:
        raise ValueError("the advantages have not been assigned")
    return batch.advantages


def token_inputs(batch: Batch, old_logp: Tensor) -> TokenInputs:
    """The objective's view of a batch whose advantages and aggregation weights are set."""
    if batch.weights is None:
        raise ValueError("the weights of the tokens have not been set")
    return TokenInputs(
        mask=batch.response_mask,
        weights=batch.weights,
        advantages=advantages_of(batch),
        rollout_logp=batch.rollout_logp,
        old_logp=old_logp,
        ref_logp=batch.ref_logp,
        forced=batch.forced,
        selected=batch.selected,
    )


def rows_with_gradient(batch: Batch, objective: ObjectiveSettings, coefficients: Coefficients) -> Tensor:
    """``[B]`` bool, the rows that may have a gradient; all where none has, because an optimizer steps all the same.

    No backward pass is made for the others. A group whose completions are all right or all wrong has advantages of 0,
    and everything that multiplies them is 0. Such rows are scored like all others, and the loss and every signal count
    them.
    """
    rows = ((advantages_of(batch) != 0) & batch.response_mask).any(1)
    if not only_advantages(objective, coefficients) or not rows.any():
        return torch.ones_like(rows)
    return rows


def only_advantages(objective: ObjectiveSettings, coefficients: Coefficients) -> bool:
    """Whether every term of the loss is a multiple of an advantage."""
    return not (
        RATIOS.choose(objective.ratio).entry.without_advantage
        or coefficients.kl
        or coefficients.entropy
        or isinstance(objective.selection, KlCov)
    )
