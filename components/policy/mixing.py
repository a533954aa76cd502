"""Inputs that are mixtures of embeddings (N-GRPO, 2606.10768): the engine makes them, the learner replays them.

The input that follows response token r is what a mix at r replaces, so it changes the distributions from r + 1 on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from components.types import Mix


class Mixes(NamedTuple):
    """Tokens and weights of the mixtures, both ``[B, R, k]``; a row of k zero weights is an ordinary token."""

    token_ids: Tensor
    weights: Tensor

    @property
    def mixed(self) -> Tensor:
        """Where a mixture was fed on, ``[B, R]`` bool. The token there is the likeliest one, not a sample."""
        return self.weights.sum(-1) > 0


def mixed_embeddings(
    embedding: Callable[[Tensor], Tensor], input_ids: Tensor, mix_ids: Tensor, mix_weights: Tensor
) -> Tensor:
    """Input embeddings ``[B, T, H]`` of ``input_ids`` ``[B, T]``, mixed where the last R columns have weights.

    Args:
        embedding: The model's input embedding, from ids of any shape to a last dimension H. Its gradient flows through
            the mixtures; the weights have none.
        mix_ids: ``[B, R, k]``.
        mix_weights: ``[B, R, k]``, 0 for ordinary tokens.
    """
    ordinary = embedding(input_ids)
    rows, places = Mixes(mix_ids, mix_weights).mixed.nonzero(as_tuple=True)
    candidates = embedding(mix_ids[rows, places])  # [mixed, k, H]
    mixtures = (mix_weights[rows, places, :, None].to(candidates.dtype) * candidates).sum(1)
    columns = places + input_ids.shape[1] - mix_ids.shape[1]
    return ordinary.index_put((rows, columns), mixtures)


def pad_mixes(completions: Sequence[Sequence[Mix]], responses: int) -> Mixes | None:
    """The mixes of B completions as tensors of padded width R = ``responses``; None where there are none."""
    candidates = max((len(mix.token_ids) for mixes in completions for mix in mixes), default=0)
    if not candidates:
        return None
    token_ids = torch.zeros(len(completions), responses, candidates, dtype=torch.long)
    weights = torch.zeros(len(completions), responses, candidates)
    for row, mixes in enumerate(completions):
        for mix in mixes:
            k = len(mix.token_ids)
            token_ids[row, mix.position, :k] = torch.tensor(mix.token_ids)
            weights[row, mix.position, :k] = torch.tensor(mix.weights)
    return Mixes(token_ids, weights)
