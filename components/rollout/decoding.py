"""What the rows of a batch have written while it is decoded."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from components.policy import Policy
from components.policy.mixing import Mixes
from components.rollout.base import Sampling, ended
from components.types import Completion, Mix


class Choice(NamedTuple):
    """The next token of every row and its log-probability, both ``[B]``, and the mixtures ``[B, k]`` fed on instead."""

    tokens: Tensor
    logp: Tensor
    mixes: Mixes | None = None

    def rows(self, rows: Tensor) -> Choice:
        """The choices of these rows."""
        mixes = None if self.mixes is None else Mixes(self.mixes.token_ids[rows], self.mixes.weights[rows])
        return Choice(self.tokens[rows], self.logp[rows], mixes)


class Writing:
    """What each row has written. A finished row writes on, behind its end, until it leaves."""

    def __init__(self, rows: int, sampling: Sampling, eos: int, device: torch.device | None = None) -> None:
        self._sampling, self._limit = sampling, sampling.max_new_tokens
        self._ends = torch.tensor([eos, *sampling.stop], device=device)
        self._logprobs = torch.zeros(rows, self._limit, device=device)
        self._mixes: list[list[Mix]] = [[] for _ in range(rows)]
        self._done = torch.zeros(rows, dtype=torch.bool, device=device)  # of the rows in the batch
        self._finished = 0  # how many of them
        self.tokens = torch.full((rows, self._limit), eos, device=device)
        self.rows = torch.arange(rows, device=device)  # row of ``tokens`` that each row of the batch writes to
        self.length = 0

    def add(self, choice: Choice) -> None:
        """Write one token in every row of the batch."""
        self.tokens[self.rows, self.length] = choice.tokens
        self._logprobs[self.rows, self.length] = choice.logp
        self._note_mixes(choice.mixes)
        self.length += 1
        self._done |= torch.isin(choice.tokens, self._ends)
        self._finished = int(self._done.sum())

    def _note_mixes(self, mixes: Mixes | None) -> None:
        if mixes is None:
            return
        mixed = mixes.mixed & ~self._done
        for row, token_ids, weights in zip(
            self.rows[mixed].tolist(), mixes.token_ids[mixed].tolist(), mixes.weights[mixed].tolist(), strict=True
        ):
            self._mixes[row].append(Mix(self.length, tuple(token_ids), tuple(weights)))

    @property
    def over(self) -> bool:
        """Whether nothing is left to write."""
        return self.length == self._limit or self._finished == len(self._done)

    @property
    def left(self) -> int:
        """Tokens that a row may still write."""
        return self._limit - self.length

    def leave(self, share: float) -> Tensor | None:
        """Let the finished rows leave where they are more than this share; the rows of the batch that stay, or None.

        Rows from the end take the places of those that leave; all others stay where they are.
        """
        count = len(self._done)
        if not self._finished or self._finished <= share * count:
            return None
        left = count - self._finished
        staying = torch.arange(left, device=self.rows.device)
        staying[self._done[:left]] = (~self._done[left:]).nonzero().squeeze(-1) + left
        self.rows, self._done, self._finished = self.rows[staying], self._done[staying], 0
        return staying

    def completions(self, policy: Policy) -> list[Completion]:
        """All rows, in the order in which they started."""
        ends = torch.isin(self.tokens[:, : self.length], self._ends)
        lengths = torch.where(ends.any(1), ends.int().argmax(1) + 1, self.length)
        rows = zip(self.tokens.tolist(), self._logprobs.tolist(), lengths.tolist(), self._mixes, strict=True)
        found = []
        for ids, logp, length, mixes in rows:
            written = tuple(ids[:length])
            reason, text = ended(policy, self._sampling, written)
            found.append(Completion(written, tuple(logp[:length]), reason, text, tuple(mixes)))
        return found
