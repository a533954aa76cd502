"""Which tokens stand next to a token in the input embedding."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from components.errors import InputError

CHUNK = 256
"""Tokens compared with the whole vocabulary at a time, so that V x V never stands in memory."""


class Neighbours:
    """Every token's k - 1 nearest others by cosine, nearest first, computed when a token is first looked up."""

    def __init__(self, table: Tensor, k: int) -> None:
        """``table`` is the input embedding ``[V, H]``; it is copied."""
        if k > len(table):
            raise InputError(
                f"a vocabulary of {len(table)} tokens has no {k} candidates",
                where="rollout.mixing.neighbours",
                how="lower it",
            )
        self._directions = functional.normalize(table.float(), dim=-1)
        self._candidates = torch.full((len(table), k), -1, device=table.device)

    def candidates(self, anchors: Tensor) -> Tensor:
        """Each anchor ``[m]`` with its neighbours behind it, ``[m, k]``."""
        for missing in torch.unique(anchors[self._candidates[anchors, 0] < 0]).split(CHUNK):
            cosines = self._directions[missing] @ self._directions.T
            cosines.scatter_(1, missing[:, None], torch.inf)  # the anchor comes first, also before its doubles
            self._candidates[missing] = cosines.topk(self._candidates.shape[1], dim=1).indices
        return self._candidates[anchors]
