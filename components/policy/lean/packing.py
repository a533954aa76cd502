"""What of a padded batch has to be computed: no padding, the prompt of a group once, no token behind the last wanted
one."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

SIZES = 64
"""The number of tokens is filled up to a multiple of it: products of sizes that were seen before start faster."""


class Seats(NamedTuple):
    """Where tokens that lie one behind the other sit in a padded array of ``rows`` x ``columns``."""

    rows: int
    columns: int
    places: Tensor  # [tokens], row * columns + column

    def seated(self, tokens: Tensor) -> Tensor:
        """``[tokens, ...]`` -> ``[rows, columns, ...]``, 0 in empty places."""
        empty = tokens.new_zeros(self.rows * self.columns, *tokens.shape[1:])
        return empty.index_copy(0, self.places, tokens).view(self.rows, self.columns, *tokens.shape[1:])

    def gathered(self, seated: Tensor) -> Tensor:
        """The way back."""
        return seated.flatten(0, 1).index_select(0, self.places)


class Packed(NamedTuple):
    """N tokens: those of the different prompts, then those of the rows behind their prompts, then some to fill up."""

    ids: Tensor  # [N]
    positions: Tensor  # [N]
    prompts: Seats
    prompt_mask: Tensor  # [prompts, P] bool
    rows: Seats
    prompt_of: Tensor  # [rows], the number of its prompt
    before: Tensor  # [W], the token that predicts each wanted one, in the order of the mask


def packed(input_ids: Tensor, attention_mask: Tensor, mask: Tensor, group: Tensor | None) -> Packed:
    """Pack rows of left-padded prompts and right-padded responses.

    Args:
        input_ids: ``[B, P + R]``, as ``attention_mask``.
        mask: ``[B, R]`` bool, the tokens of the responses whose probability is wanted.
        group: ``[B]``; rows of one number have the same prompt. None: every row has its own.
    """
    count, responses = mask.shape
    width = input_ids.shape[1] - responses
    first, prompt_of = _distinct(group, count)
    prompt_mask = attention_mask[first, :width].bool()
    lengths = prompt_mask.sum(1)
    columns = torch.arange(responses)
    last = (mask * (columns + 1)).amax(1)  # of the wanted ones, counted from 1; what is read ends before it
    read = columns < (last - 1)[:, None]
    used = max(1, int(last.max()) - 1)

    prompts = Seats(len(first), width, prompt_mask.flatten().nonzero().squeeze(-1))
    rows = Seats(count, used, read[:, :used].flatten().nonzero().squeeze(-1))
    behind = (lengths[prompt_of][:, None] + columns)[read]
    ids = torch.cat([input_ids[first, :width][prompt_mask], input_ids[:, width:][read]])
    positions = torch.cat([(prompt_mask.cumsum(1) - 1)[prompt_mask], behind])
    fill = (0, -len(ids) % SIZES)

    numbers = len(prompts.places) - 1 + read.flatten().cumsum(0).view(read.shape)  # of the tokens that are read
    ends = (lengths.cumsum(0) - 1)[prompt_of]
    before = torch.cat([ends[:, None], numbers[:, :-1]], dim=1)[mask]
    return Packed(
        functional.pad(ids, fill), functional.pad(positions, fill), prompts, prompt_mask, rows, prompt_of, before
    )


def _distinct(group: Tensor | None, rows: int) -> tuple[Tensor, Tensor]:
    """A row of every prompt, and the number of every row's prompt."""
    if group is None:
        return torch.arange(rows), torch.arange(rows)
    values, number = torch.unique(group, return_inverse=True)
    first = torch.full_like(values, rows).scatter_reduce(0, number, torch.arange(rows), "amin")
    return first, number
