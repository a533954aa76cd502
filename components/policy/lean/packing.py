"""What of a padded batch has to be computed: no padding, the prompt of a group once, no token behind the last wanted
one."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

SIZES = 64
"""The number of tokens is filled up to a multiple of it: products of sizes that were seen before start faster."""
SHORT = 192
"""Keys up to which attention is computed as plain products: fused kernels only pay for longer ones on a CPU."""
HIDDEN = -1e30
"""Added to the scores of what must not be seen. Finite: an empty seat that sees nothing gives no NaN."""


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


class Attention:
    """Causal attention over one packed batch, layer after layer: prompts to themselves, rows to their prompt and to
    themselves."""

    def __init__(self, batch: Packed, kv_heads: int, scale: float) -> None:
        self._batch, self._kv_heads, self._scale = batch, kv_heads, scale
        prompts, rows = batch.prompts.columns, batch.rows.columns
        of_prompts = hiding(batch.prompt_mask)[:, None, :]
        self._within = of_prompts + causal(prompts)  # [prompts, P, P]
        seen = of_prompts[batch.prompt_of].expand(-1, rows, -1)
        self._behind = torch.cat([seen, causal(rows).expand(len(seen), -1, -1)], dim=2)  # [rows, R, P + R]

    def kept(self, heads: int, head_dim: int) -> int:
        """About how many numbers one layer keeps for the way back: scores, and what goes into them."""
        seats = (self._within, self._behind)
        return sum(len(part) * heads * part.shape[1] * (part.shape[2] + 2 * head_dim) for part in seats)

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Queries ``[N, heads, D]``, keys and values ``[N, kv_heads, D]`` -> ``[N, heads * D]``."""
        batch = self._batch
        first, own = len(batch.prompts.places), len(batch.rows.places)
        sizes = [first, own, len(queries) - first - own]
        (q_prompt, q_own, _), (k_prompt, k_own, _), (v_prompt, v_own, _) = (
            torch.split(part, sizes) for part in (queries, keys, values)
        )
        k_prompt, v_prompt = (batch.prompts.seated(part) for part in (k_prompt, v_prompt))
        prompts = self._attend(batch.prompts.seated(q_prompt), k_prompt, v_prompt, self._within)
        k_own, v_own = (
            torch.cat([prompt.index_select(0, batch.prompt_of), batch.rows.seated(part)], dim=1)
            for prompt, part in ((k_prompt, k_own), (v_prompt, v_own))
        )
        rows = self._attend(batch.rows.seated(q_own), k_own, v_own, self._behind)
        rest = queries.new_zeros(sizes[2], *queries.shape[1:])
        return torch.cat([batch.prompts.gathered(prompts), batch.rows.gathered(rows), rest]).flatten(1)

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor) -> Tensor:
        """``[B, Q, heads, D]`` and ``[B, K, kv_heads, D]`` -> ``[B, Q, heads, D]``."""
        q, k, v = (part.transpose(1, 2) for part in (queries, keys, values))
        if k.shape[2] > SHORT:
            found = functional.scaled_dot_product_attention(
                q, k, v, hidden[:, None], scale=self._scale, enable_gqa=True
            )
            return found.transpose(1, 2)
        # The query heads that share keys are the rows of one product, so that keys are never repeated.
        shape = (len(q), self._kv_heads, -1, *q.shape[2:])
        grouped = (q * self._scale).reshape(shape)  # [B, kv_heads, heads / kv_heads, Q, D]
        scores = torch.matmul(grouped.flatten(2, 3), k.transpose(-1, -2))
        scores = scores.view(*grouped.shape[:-1], -1).add_(hidden[:, None, None])
        found = torch.matmul(scores.softmax(-1).flatten(2, 3), v)
        return found.view(grouped.shape).flatten(1, 2).transpose(1, 2)


def hiding(mask: Tensor) -> Tensor:
    """What is added to scores where ``mask`` is False."""
    return torch.zeros(mask.shape).masked_fill_(~mask, HIDDEN)


def causal(columns: int) -> Tensor:
    """What is added to scores so that no token sees a later one, ``[1, columns, columns]``."""
    return torch.full((columns, columns), HIDDEN).triu_(1)[None]
