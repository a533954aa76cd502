"""Chance, and what it makes of logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from components.seeds import derive


class Draws:
    """One uniform number in [0, 1) for every token that the rows of a batch may write.

    Each group draws from a stream of its own, by its number among all prompts of the call, so that it gets the same
    numbers whichever prompts stand beside it and whenever their rows end.
    """

    def __init__(self, seed: int, groups: Sequence[int], n: int, limit: int) -> None:
        """``n`` rows for each of ``groups``, one group after the other, and up to ``limit`` tokens a row."""
        self._uniform = torch.empty(len(groups) * n, limit, dtype=torch.float64)  # fp32 would miss rare tokens
        for place, group in enumerate(groups):
            generator = torch.Generator().manual_seed(derive(seed, "draws", group))
            self._uniform[place * n : (place + 1) * n].uniform_(generator=generator)

    def at(self, rows: Tensor, place: int) -> Tensor:
        """The numbers of these rows for their token at ``place``, ``[len(rows)]`` fp64."""
        return self._uniform[rows, place]


def choose(logits: Tensor, temperature: float, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Next token and its log-probability for each row of ``logits`` ``[B, V]``; temperature 0 takes the likeliest.

    A sample is the first token at which the cumulative probability exceeds the row's ``uniform`` number.

    Raises:
        RuntimeError: logits are NaN, or infinite, so that there is no distribution.
    """
    if temperature == 0:
        distribution = torch.log_softmax(logits.float(), dim=-1)
        logp, chosen = distribution.max(dim=-1)
        _refuse_nan(logp)
        return chosen, logp
    distribution = torch.log_softmax(logits.float() / temperature, dim=-1)
    cumulative = distribution.exp().cumsum(-1, dtype=torch.float64)
    _refuse_nan(cumulative[:, -1])
    threshold = (uniform * cumulative[:, -1])[:, None]
    chosen = torch.searchsorted(cumulative, threshold, right=True).clamp_(max=logits.shape[-1] - 1)
    return chosen.squeeze(-1), distribution.gather(-1, chosen).squeeze(-1)


def _refuse_nan(totals: Tensor) -> None:
    """Largest log-probability or sum of probabilities of each row: NaN where any of its logits is no number or +inf."""
    if bool(totals.isnan().any()):
        raise RuntimeError("the policy's logits are NaN or infinite: there is nothing to sample from")
