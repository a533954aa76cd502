"""Rows of an update that have no gradient, so that no backward pass is made for them.

A group whose completions are all right or all wrong has advantages of 0, and everything that multiplies them is 0. Such
rows are scored like all others, and the loss and every signal count them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.exploration import KlCov
from components.config.objective import ObjectiveSettings
from components.learner.batch import Batch
from components.learner.inputs import advantages_of
from components.objectives.controllers import Coefficients
from components.objectives.ratios import RATIOS


def rows_with_gradient(batch: Batch, objective: ObjectiveSettings, coefficients: Coefficients) -> Tensor:
    """``[B]`` bool, the rows that may have a gradient; all where none has, because an optimizer steps all the same."""
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
