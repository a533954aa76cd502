"""A batch read by the lean forward pass; its keys and values stand in tensors that are written in place."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from components.policy.logprobs import position_ids
from components.policy.padding import pad
from components.rollout.context import Context, embedded
from components.rollout.decoding import Choice
from components.rollout.dense import DenseModel

COLUMNS = 64
"""Columns that there is room for behind the prompts, at first; when they are full, the room doubles."""


class DenseContext(Context):
    """Prompts end at the same column; every column behind it is one token of every row."""

    leave_at = 1 / 16  # only rows that fill a gap are copied

    def __init__(self, dense: DenseModel, prompts: Sequence[Sequence[int]], limit: int) -> None:
        self._dense = dense
        self._ids, self._mask, _ = pad(prompts, [()] * len(prompts), 0)
        self._columns, self._limit = self._ids.shape[1], self._ids.shape[1] + limit
        self._rotary = dense.rotary(self._limit)

    def read_prompts(self, n: int) -> Tensor:
        dense, (prompts, width) = self._dense, self._ids.shape
        cache = Cache(dense, prompts * n, min(self._limit, width + COLUMNS))
        seen = visible(self._mask)

        def attend(layer: int, *heads: Tensor) -> Tensor:
            queries, keys, values = (part.view(prompts, width, -1, dense.head_dim).transpose(1, 2) for part in heads)
            cache.write_prompts(layer, keys, values, n)
            found = functional.scaled_dot_product_attention(
                queries, keys, values, attn_mask=seen, is_causal=seen is None, scale=dense.scale, enable_gqa=True
            )
            return found.transpose(1, 2).reshape(prompts * width, -1)

        positions = position_ids(self._mask)
        hidden = dense.forward(dense.embedding(self._ids.flatten()), self._rotary.at(positions.flatten()), attend)
        if seen is not None:
            cache.hide(self._mask.repeat_interleave(n, 0) == 0)
        self._cache, self._positions = cache, (positions[:, -1] + 1).repeat_interleave(n)
        return dense.logits(hidden.view(prompts, width, -1)[:, -1]).repeat_interleave(n, 0)

    def read(self, choice: Choice) -> Tensor:
        dense, cache, column = self._dense, self._cache, self._columns
        if column == cache.room:
            cache.grow(min(self._limit, 2 * column))

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            cache.write(layer, column, keys, values)
            # The query heads that share keys are the rows of one product, so that keys are never repeated.
            grouped = queries.view(len(queries), dense.kv_heads, -1, dense.head_dim)
            found = functional.scaled_dot_product_attention(grouped, *cache.read(layer, column + 1), scale=dense.scale)
            return found.flatten(1)

        hidden = dense.forward(embedded(dense.embedding, choice), self._rotary.at(self._positions), attend)
        self._columns, self._positions = column + 1, self._positions + 1
        return dense.logits(hidden)

    def keep(self, rows: Tensor) -> None:
        self._cache.keep(rows, self._columns)
        self._positions = self._positions[rows]


class Cache:
    """Keys and values ``[layers, rows, kv_heads, room, D]``, and which columns are padding."""

    def __init__(self, dense: DenseModel, rows: int, room: int) -> None:
        shape = (len(dense.layers), rows, dense.kv_heads, room, dense.head_dim)
        self._keys, self._values = torch.empty(shape, dtype=dense.dtype), torch.empty(shape, dtype=dense.dtype)
        self._mask: Tensor | None = None  # [rows, 1, 1, room], added to the scores
        self._rows = rows  # that are still there; what stands behind them is left over

    @property
    def room(self) -> int:
        """Columns that fit."""
        return self._keys.shape[3]

    def hide(self, padding: Tensor) -> None:
        """Keep the columns of the prompts that are ``padding`` ``[rows, width]`` from ever being attended to."""
        self._mask = torch.zeros(len(padding), 1, 1, self.room, dtype=self._keys.dtype)
        self._mask[:, 0, 0, : padding.shape[1]].masked_fill_(padding, -torch.inf)

    def write_prompts(self, layer: int, keys: Tensor, values: Tensor, n: int) -> None:
        """Keys and values of prompts, ``[prompts, kv_heads, width, D]``, into ``n`` rows each."""
        for cache, new in ((self._keys, keys), (self._values, values)):
            rows = cache[layer].view(-1, n, *cache.shape[2:])
            rows[:, :, :, : new.shape[2]] = new[:, None]

    def write(self, layer: int, column: int, keys: Tensor, values: Tensor) -> None:
        """Keys and values ``[rows, kv_heads, D]`` of one token a row."""
        self._keys[layer, : self._rows, :, column] = keys
        self._values[layer, : self._rows, :, column] = values

    def read(self, layer: int, columns: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """Keys, values and mask of the first ``columns``."""
        rows = slice(self._rows)
        mask = None if self._mask is None else self._mask[rows, :, :, :columns]
        return self._keys[layer, rows, :, :columns], self._values[layer, rows, :, :columns], mask

    def keep(self, rows: Tensor, columns: int) -> None:
        """Forget all rows but these, which take this order. A row that stays in its place is not copied."""
        moved = (rows != torch.arange(len(rows))).nonzero().squeeze(-1)
        for cache in (self._keys, self._values):
            cache[:, moved, :, :columns] = cache[:, rows[moved], :, :columns]
        if self._mask is not None:
            self._mask[moved] = self._mask[rows[moved]]
        self._rows = len(rows)

    def grow(self, room: int) -> None:
        """Make room for that many columns."""
        more = room - self.room
        self._keys, self._values = (
            functional.pad(cache[:, : self._rows], (0, 0, 0, more)) for cache in (self._keys, self._values)
        )
        self._mask = None if self._mask is None else functional.pad(self._mask[: self._rows], (0, more))


def visible(mask: Tensor) -> Tensor | None:
    """What each token of left-padded prompts attends to, ``[prompts, 1, width, width]`` bool; None where all are of one
    length, so that this is all tokens before it."""
    if bool(mask.all()):
        return None
    square = torch.ones(mask.shape[1], mask.shape[1], dtype=torch.bool)
    alone = torch.eye(mask.shape[1], dtype=torch.bool)  # for padding: a softmax over nothing is not a number
    return (mask[:, None, None].bool() & square.tril()) | alone
