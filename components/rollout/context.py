"""The model with all that it has read, one row a completion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional
from transformers import DynamicCache

from components.policy import Policy
from components.policy.logprobs import position_ids
from components.policy.mixing import mixed_embeddings
from components.policy.padding import pad
from components.rollout.decoding import Choice
from components.rollout.dense import DenseModel
from components.rollout.static_cache import Cache, RepeatedPrompts, SharedPrompts
from components.working import working

SHARED_FROM = 32
"""Tokens of a prompt from which the rows of a group share its keys and values: measured for heads of 32 and of 64, as
fast at 20, 1.0 to 1.6 times at 50 and 1.1 to 2.2 times at 90."""


class Context(ABC):
    """What a batch has read; logits come out of it, one token a row at a time."""

    leave_at: float
    """Share of finished rows from which it is cheaper to let them leave than to go on reading for them."""

    @abstractmethod
    def read_prompts(self, n: int) -> Tensor:
        """Read each prompt once and make ``n`` rows of it; logits of what follows, ``[prompts * n, V]``."""

    @abstractmethod
    def read(self, choice: Choice) -> Tensor:
        """Read every row's choice; logits of what follows, ``[B, V]``."""

    @abstractmethod
    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these, which take this order."""


class ModelContext(Context):
    """Any causal language model of transformers, through its own forward pass and dynamic cache."""

    leave_at = 0.5  # the whole cache is copied

    def __init__(self, policy: Policy, prompts: Sequence[Sequence[int]]) -> None:
        self._model, self._cache = policy.model, DynamicCache(config=policy.model.config)
        self._prompts, self._mask, _ = pad(prompts, [()] * len(prompts), policy.pad_id).to(policy.model.device)

    def read_prompts(self, n: int) -> Tensor:
        logits = self._forward(position_ids(self._mask), input_ids=self._prompts, logits_to_keep=1)
        if n > 1:
            self._cache.batch_repeat_interleave(n)
            self._mask = self._mask.repeat_interleave(n, dim=0)
            logits = logits.repeat_interleave(n, dim=0)
        return logits

    def read(self, choice: Choice) -> Tensor:
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(self._mask), 1)], dim=1)
        positions = position_ids(self._mask)[:, -1:]
        if choice.mixes is None:
            return self._forward(positions, input_ids=choice.tokens[:, None])
        return self._forward(positions, inputs_embeds=embedded(self._model.get_input_embeddings(), choice)[:, None])

    def keep(self, rows: Tensor) -> None:
        self._cache.batch_select_indices(rows)
        self._mask = self._mask[rows]

    def _forward(self, positions: Tensor, **inputs: Tensor | int) -> Tensor:
        output = self._model(
            attention_mask=self._mask, position_ids=positions, past_key_values=self._cache, use_cache=True, **inputs
        )
        logits: Tensor = output.logits[:, -1]
        return logits


def embedded(embedding: torch.nn.Module, choice: Choice) -> Tensor:
    """What is fed on after a choice, ``[B, H]``: the tokens' embeddings, or the mixtures in their place."""
    if choice.mixes is None:
        plain: Tensor = embedding(choice.tokens)
        return plain
    token_ids, weights = choice.mixes
    return mixed_embeddings(embedding, choice.tokens[:, None], token_ids[:, None], weights[:, None])[:, 0]


class DenseContext(Context):
    """Prompts end at the same column; every column behind it is one token of every row."""

    leave_at = 1 / 16  # only rows that fill a gap are copied

    def __init__(self, dense: DenseModel, prompts: Sequence[Sequence[int]], limit: int) -> None:
        self._dense, self._limit, self._column = dense, limit, 0
        self._ids, self._mask, _ = pad(prompts, [()] * len(prompts), 0).to(dense.device)
        self._rotary = dense.rotary(self._ids.shape[1] + limit)

    def read_prompts(self, n: int) -> Tensor:
        dense, (prompts, width) = self._dense, self._ids.shape
        shared = width >= SHARED_FROM and n > 1 and dense.device.type == "cpu"  # its kernel is for CPUs
        kind = SharedPrompts if shared else RepeatedPrompts
        cache: Cache = kind(dense, self._mask, n, self._limit)
        seen = visible(self._mask)

        def attend(layer: int, *heads: Tensor) -> Tensor:
            queries, keys, values = (part.view(prompts, width, -1, dense.head_dim).transpose(1, 2) for part in heads)
            cache.write_prompts(layer, keys, values)
            work.add()
            found = functional.scaled_dot_product_attention(
                queries, keys, values, attn_mask=seen, is_causal=seen is None, scale=dense.scale, enable_gqa=True
            )
            return found.transpose(1, 2).reshape(prompts * width, -1)

        positions = position_ids(self._mask)
        with working(f"reading {prompts} prompts", len(dense.layers), "layers") as work:
            hidden = dense.forward(dense.embedding(self._ids.flatten()), self._rotary.at(positions.flatten()), attend)
        self._cache, self._positions = cache, (positions[:, -1] + 1).repeat_interleave(n)
        return dense.logits(hidden.view(prompts, width, -1)[:, -1]).repeat_interleave(n, 0)

    def read(self, choice: Choice) -> Tensor:
        dense, cache, column = self._dense, self._cache, self._column
        cache.make_room(column)

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            return cache.attend(layer, column, queries, keys, values)

        hidden = dense.forward(embedded(dense.embedding, choice), self._rotary.at(self._positions), attend)
        self._column, self._positions = column + 1, self._positions + 1
        return dense.logits(hidden)

    def keep(self, rows: Tensor) -> None:
        self._cache.keep(rows, self._column)
        self._positions = self._positions[rows]


def visible(mask: Tensor) -> Tensor | None:
    """What each token of left-padded prompts attends to, ``[prompts, 1, width, width]`` bool; None where all are of one
    length, so that this is all tokens before it."""
    if bool(mask.all()):
        return None
    square = mask.new_ones(mask.shape[1], mask.shape[1], dtype=torch.bool)
    alone = torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)  # for padding: a softmax over nothing is NaN
    return (mask[:, None, None].bool() & square.tril()) | alone
