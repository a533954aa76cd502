"""Keys and values of a batch, in tensors that are written in place."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from components.rollout.dense import DenseModel

COLUMNS = 64
"""Tokens that there is room for behind the prompts, at first; when they are full, the room doubles."""


class Cache(Protocol):
    """What the rows of a batch have read. Columns behind the prompts are numbered from 0."""

    def write_prompts(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Keys and values of the prompts, ``[prompts, kv_heads, width, D]``."""

    def attend(self, layer: int, column: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Write keys and values ``[rows, kv_heads, D]`` of a token of every row, and let its queries
        ``[rows, heads, D]`` attend to all that the row has read, ``[rows, heads * D]``."""

    def make_room(self, column: int) -> None:
        """See to it that this column can be written."""

    def keep(self, rows: Tensor, columns: int) -> None:
        """Forget all rows but these, which take this order; so many columns have been written."""


class Columns:
    """Keys and values ``[layers, rows, kv_heads, room, D]`` of which the first columns have been written."""

    def __init__(self, dense: DenseModel, rows: int, room: int, limit: int) -> None:
        shape = (len(dense.layers), rows, dense.kv_heads, room, dense.head_dim)
        self._keys, self._values = (torch.empty(shape, dtype=dense.dtype, device=dense.device) for _ in range(2))
        self._rows, self._limit = rows, limit  # what stands behind these rows is left over

    def make_room(self, column: int) -> None:
        """Twice the columns, up to the limit, where this one does not fit."""
        room = self._keys.shape[3]
        if column >= room:
            more = min(self._limit, 2 * room) - room
            self._keys, self._values = (
                functional.pad(tensor[:, : self._rows], (0, 0, 0, more)) for tensor in (self._keys, self._values)
            )

    def write(self, layer: int, column: int, keys: Tensor, values: Tensor) -> None:
        """One token a row, ``[rows, kv_heads, D]``."""
        self._keys[layer, : self._rows, :, column] = keys
        self._values[layer, : self._rows, :, column] = values

    def write_groups(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """The first columns of equal shares of the rows, ``[shares, kv_heads, columns, D]``."""
        for tensor, new in ((self._keys, keys), (self._values, values)):
            shares = tensor[layer].view(len(new), -1, *tensor.shape[2:])
            shares[:, :, :, : new.shape[2]] = new[:, None]

    def read(self, layer: int, columns: int) -> tuple[Tensor, Tensor]:
        """Keys and values of the first ``columns``, ``[rows, kv_heads, columns, D]``."""
        return self._keys[layer, : self._rows, :, :columns], self._values[layer, : self._rows, :, :columns]

    def keep(self, rows: Tensor, columns: int) -> None:
        """Forget all rows but these. A row that stays in its place is not copied."""
        moved = (rows != torch.arange(len(rows), device=rows.device)).nonzero().squeeze(-1)
        for tensor in (self._keys, self._values):
            tensor[:, moved, :, :columns] = tensor[:, rows[moved], :, :columns]
        self._rows = len(rows)


class RepeatedPrompts:
    """Every row has its prompt in its first columns. The faster way for short prompts."""

    def __init__(self, dense: DenseModel, mask: Tensor, n: int, limit: int) -> None:
        """``n`` rows for every row of ``mask`` ``[prompts, width]``, and up to ``limit`` tokens behind them."""
        rows, self._width = n * len(mask), mask.shape[1]
        self._dense = dense
        self._columns = Columns(dense, rows, self._width + min(limit, COLUMNS), self._width + limit)
        self._mask: Tensor | None = None  # [rows, 1, 1, columns], added to the scores
        if not bool(mask.all()):
            hidden = hiding(mask, dense.dtype).repeat_interleave(n, 0)
            self._mask = functional.pad(hidden, (0, limit))

    def write_prompts(self, layer: int, keys: Tensor, values: Tensor) -> None:
        self._columns.write_groups(layer, keys, values)

    def attend(self, layer: int, column: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        dense, place = self._dense, self._width + column
        self._columns.write(layer, place, keys, values)
        # The query heads that share keys are the rows of one product, so that keys are never repeated.
        grouped = queries.view(len(queries), dense.kv_heads, -1, dense.head_dim)
        mask = None if self._mask is None else self._mask[..., : place + 1]
        return attention(dense.scale * grouped, *self._columns.read(layer, place + 1), mask).flatten(1)

    def make_room(self, column: int) -> None:
        self._columns.make_room(self._width + column)

    def keep(self, rows: Tensor, columns: int) -> None:
        self._columns.keep(rows, self._width + columns)
        self._mask = None if self._mask is None else self._mask[rows]


def attention(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Attention of scaled queries ``[B, H, Q, D]`` to keys and values ``[B, H, K, D]``. With so few queries plain
    products are faster than the fused kernel; that one adds up in fp32 where these would not."""
    if queries.dtype != torch.float32:
        return functional.scaled_dot_product_attention(queries, keys, values, mask, scale=1.0)
    scores = torch.matmul(queries, keys.transpose(-1, -2))
    if mask is not None:
        scores += mask
    return torch.matmul(scores.softmax(-1), values)


def hiding(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """What is added to scores so that padding is never attended to, ``[B, 1, 1, width]``."""
    return mask.new_zeros(mask.shape, dtype=dtype).masked_fill_(mask == 0, -torch.inf)[:, None, None]


class Part(NamedTuple):
    """Attention to some of the keys, ``[..., D]``, and the logarithm of the sum of exp(score) over them, ``[...]`` in
    fp32."""

    found: Tensor
    logsum: Tensor


class SharedPrompts:
    """The prompts by themselves, and for every row its own columns.

    The attention of a row is that to the prompt and that to its own tokens, put together by the sums that their
    softmaxes were divided by. The queries of one group attend to the prompt's keys together, which so are read once
    instead of n times; they take 1 / n of the memory. For short prompts the additional operations cost more than that.
    """

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
