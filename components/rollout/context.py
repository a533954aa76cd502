"""The model with all that it has read, one row a completion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import DynamicCache

from components.policy import Policy
from components.policy.logprobs import position_ids
from components.policy.mixing import mixed_embeddings
from components.policy.padding import pad
from components.rollout.decoding import Choice


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
