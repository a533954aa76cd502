"""One batch of completions while it is decoded: what the model has read, and what the rows have written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import DynamicCache

from components.policy import Policy
from components.policy.logprobs import position_ids
from components.policy.mixing import Mixes, mixed_embeddings
from components.policy.padding import pad
from components.rollout.base import Sampling
from components.types import Completion, FinishReason, Mix


class Choice(NamedTuple):
    """The next token of every row and its log-probability, both ``[B]``, and the mixtures ``[B, k]`` fed on instead."""

    tokens: Tensor
    logp: Tensor
    mixes: Mixes | None = None

    def rows(self, rows: Tensor) -> Choice:
        """The choices of these rows."""
        mixes = None if self.mixes is None else Mixes(self.mixes.token_ids[rows], self.mixes.weights[rows])
        return Choice(self.tokens[rows], self.logp[rows], mixes)


class Context:
    """The model with all that it has read: a KV cache and an attention mask, one row a completion."""

    def __init__(self, policy: Policy, prompts: Sequence[Sequence[int]]) -> None:
        self._model, self._cache = policy.model, DynamicCache(config=policy.model.config)
        self._prompts, self._mask, _ = pad(prompts, [()] * len(prompts), policy.pad_id)

    def read_prompts(self, n: int) -> Tensor:
        """Read each prompt once and make ``n`` rows of it; logits of what follows, ``[prompts * n, V]``."""
        logits = self._forward(position_ids(self._mask), input_ids=self._prompts, logits_to_keep=1)
        if n > 1:
            self._cache.batch_repeat_interleave(n)
            self._mask = self._mask.repeat_interleave(n, dim=0)
            logits = logits.repeat_interleave(n, dim=0)
        return logits

    def read(self, choice: Choice) -> Tensor:
        """Read every row's choice; logits of what follows, ``[B, V]``."""
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(self._mask), 1)], dim=1)
        positions, tokens = position_ids(self._mask)[:, -1:], choice.tokens[:, None]
        if choice.mixes is None:
            return self._forward(positions, input_ids=tokens)
        token_ids, weights = choice.mixes
        embedding = self._model.get_input_embeddings()
        return self._forward(
            positions, inputs_embeds=mixed_embeddings(embedding, tokens, token_ids[:, None], weights[:, None])
        )

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these."""
        self._cache.batch_select_indices(rows)
        self._mask = self._mask[rows]

    def _forward(self, positions: Tensor, **inputs: Tensor | int) -> Tensor:
        output = self._model(
            attention_mask=self._mask, position_ids=positions, past_key_values=self._cache, use_cache=True, **inputs
        )
        logits: Tensor = output.logits[:, -1]
        return logits


class Writing:
    """What each row has written. Finished rows stay in the batch until half of it is done, then all of them leave."""

    def __init__(self, rows: int, sampling: Sampling, eos: int) -> None:
        self._eos, self._stop, self._limit = eos, frozenset(sampling.stop), sampling.max_new_tokens
        self._ends = torch.tensor([eos, *sorted(self._stop)])
        self._logprobs = torch.zeros(rows, self._limit)
        self._lengths = torch.full((rows,), self._limit)
        self._mixes: list[list[Mix]] = [[] for _ in range(rows)]
        self._done = torch.zeros(rows, dtype=torch.bool)  # of the rows in the batch
        self.tokens = torch.full((rows, self._limit), eos)
        self.rows = torch.arange(rows)  # row of ``tokens`` that each row of the batch writes to
        self.length = 0

    def add(self, choice: Choice) -> None:
        """Write one token in every row of the batch that is not done."""
        going = (~self._done).nonzero().squeeze(-1)
        rows, choice = self.rows[going], choice.rows(going)
        self.tokens[rows, self.length] = choice.tokens
        self._logprobs[rows, self.length] = choice.logp
        self._note_mixes(rows, choice.mixes)
        ended = torch.isin(choice.tokens, self._ends)
        self.length += 1
        self._lengths[rows[ended]] = self.length
        self._done[going[ended]] = True

    def _note_mixes(self, rows: Tensor, mixes: Mixes | None) -> None:
        if mixes is None:
            return
        mixed = mixes.mixed
        for row, token_ids, weights in zip(
            rows[mixed].tolist(), mixes.token_ids[mixed].tolist(), mixes.weights[mixed].tolist(), strict=True
        ):
            self._mixes[row].append(Mix(self.length, tuple(token_ids), tuple(weights)))

    @property
    def over(self) -> bool:
        """Whether nothing is left to write."""
        return self.length == self._limit or bool(self._done.all())

    def leave(self) -> Tensor | None:
        """Let the finished rows leave where they are the greater half; the rows of the batch that stay, or None."""
        if int(self._done.sum()) * 2 <= len(self._done):
            return None
        staying = (~self._done).nonzero().squeeze(-1)
        self.rows, self._done = self.rows[staying], self._done[staying]
        return staying

    def completions(self, policy: Policy) -> list[Completion]:
        """All rows, in the order in which they started."""
        rows = zip(self.tokens.tolist(), self._logprobs.tolist(), self._lengths.tolist(), self._mixes, strict=True)
        found = []
        for ids, logp, length, mixes in rows:
            written = tuple(ids[:length])
            reason = self._finish_reason(written[-1])
            text = policy.decode(written if reason == "length" else written[:-1])
            found.append(Completion(written, tuple(logp[:length]), reason, text, tuple(mixes)))
        return found

    def _finish_reason(self, last: int) -> FinishReason:
        if last == self._eos:
            return "stop"
        return "stop_token" if last in self._stop else "length"
