"""Keys and values of which the rows of a group share those of their prompt.

The attention of a row is that to the prompt and that to its own tokens, put together by the sums that their softmaxes
were divided by. The queries of one group attend to the prompt's keys together, which so are read once instead of n
times; they take 1 / n of the memory. For short prompts the additional operations cost more than that.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from components.rollout.dense import DenseModel
from components.rollout.static_cache import COLUMNS, Columns, hiding


class Part(NamedTuple):
    """Attention to some of the keys, ``[..., D]``, and the logarithm of the sum of exp(score) over them, ``[...]`` in
    fp32."""

    found: Tensor
    logsum: Tensor


class SharedPrompts:
    """The prompts by themselves, and for every row its own columns."""

    def __init__(self, dense: DenseModel, mask: Tensor, n: int, limit: int) -> None:
        """``n`` rows for every row of ``mask`` ``[prompts, width]``, and up to ``limit`` tokens behind them."""
        prompts, width = mask.shape
        shape = (len(dense.layers), prompts, dense.kv_heads, width, dense.head_dim)
        self._dense, self._n = dense, n
        self._keys, self._values = torch.empty(shape, dtype=dense.dtype), torch.empty(shape, dtype=dense.dtype)
        self._mask = None if bool(mask.all()) else hiding(mask, dense.dtype)
        self._columns = Columns(dense, prompts * n, min(limit, COLUMNS), limit)
        self._seat(torch.arange(prompts).repeat_interleave(n))

    def _seat(self, prompts: Tensor) -> None:
        """Give every row, by the number of its prompt, a seat in a grid of ``[prompts, most rows of one]``.

        An empty seat shows row 0, and its result is not used.
        """
        counts, order = prompts.bincount(), prompts.argsort(stable=True)
        first = counts.cumsum(0) - counts
        most = int(counts.max())
        self._prompts, self._seats = prompts, torch.empty_like(prompts)
        self._seats[order] = prompts[order] * most + torch.arange(len(prompts)) - first[prompts[order]]
        self._grid = torch.zeros(len(counts) * most, dtype=torch.long)
        self._grid[self._seats] = torch.arange(len(prompts))

    def write_prompts(self, layer: int, keys: Tensor, values: Tensor) -> None:
        self._keys[layer], self._values[layer] = keys, values

    def attend(self, layer: int, column: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        dense, count = self._dense, self._keys.shape[1]
        self._columns.write(layer, column, keys, values)
        grouped = queries.view(len(queries), dense.kv_heads, -1, dense.head_dim)
        own = attended(grouped, *self._columns.read(layer, column + 1), dense.scale)
        seated = grouped[self._grid].view(count, -1, *grouped.shape[1:])  # [prompts, seats, kv_heads, group, D]
        together = seated.transpose(1, 2).flatten(2, 3)
        read = attended(together, self._keys[layer], self._values[layer], dense.scale, self._mask)
        prompt = (part.reshape(*together.shape[:2], seated.shape[1], -1, *part.shape[3:]) for part in read)
        seats = Part(*(part.transpose(1, 2).flatten(0, 1)[self._seats] for part in prompt))
        return joined(seats, own).flatten(1)

    def make_room(self, column: int) -> None:
        self._columns.make_room(column)

    def keep(self, rows: Tensor, columns: int) -> None:
        self._columns.keep(rows, columns)
        going, prompts = torch.unique(self._prompts[rows], return_inverse=True)
        if len(going) < self._keys.shape[1]:
            self._keys, self._values = self._keys[:, going], self._values[:, going]
            self._mask = None if self._mask is None else self._mask[going]
        self._seat(prompts)


def attended(queries: Tensor, keys: Tensor, values: Tensor, scale: float, mask: Tensor | None = None) -> Part:
    """Attention of queries ``[B, H, Q, D]`` to keys and values ``[B, H, K, D]``."""
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return Part(*fused(queries, keys, values, attn_mask=mask, scale=scale))


def joined(one: Part, other: Part) -> Tensor:
    """Attention to the keys of both parts."""
    share = torch.sigmoid(other.logsum - one.logsum)[..., None]
    return torch.lerp(one.found, other.found, share.to(one.found.dtype))
