"""A batch as the objective and the model take it."""

from __future__ import annotations

from dataclasses import fields, replace

import torch
from torch import Tensor

from components.learner.batch import Batch
from components.objectives.tokens import TokenInputs


def moved(batch: Batch, device: torch.device) -> Batch:
    """The batch where the weights are."""
    if device == batch.input_ids.device:
        return batch
    tensors = {f.name: getattr(batch, f.name) for f in fields(batch)}
    return replace(batch, **{name: t.to(device, non_blocking=True) for name, t in tensors.items() if t is not None})


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
