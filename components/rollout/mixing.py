"""N-GRPO (2606.10768): now and then the next input is a mixture of the likeliest token and its neighbours."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedTokenizerBase

from components.config.rollout import Mixing
from components.errors import InputError
from components.policy.mixing import Mixes
from components.rollout.decoding import Choice, Writing

CHUNK = 256
"""Tokens compared with the whole vocabulary at a time, so that V x V never stands in memory."""


class Neighbours:
    """Every token's k - 1 nearest others by cosine, nearest first, computed when a token is first looked up."""

    def __init__(self, table: Tensor, k: int) -> None:
        """``table`` is the input embedding ``[V, H]``; it is copied."""
        if k > len(table):
            raise InputError(
                f"a vocabulary of {len(table)} tokens has no {k} candidates",
                where="rollout.mixing.neighbours",
                how="lower it",
            )
        self._directions = functional.normalize(table.float(), dim=-1)
        self._candidates = torch.full((len(table), k), -1, device=table.device)

    def candidates(self, anchors: Tensor) -> Tensor:
        """Each anchor ``[m]`` with its neighbours behind it, ``[m, k]``."""
        for missing in torch.unique(anchors[self._candidates[anchors, 0] < 0]).split(CHUNK):
            cosines = self._directions[missing] @ self._directions.T
            cosines.scatter_(1, missing[:, None], torch.inf)  # the anchor comes first, also before its doubles
            self._candidates[missing] = cosines.topk(self._candidates.shape[1], dim=1).indices
        return self._candidates[anchors]


class Marker:
    """Which rows of one batch have written a text; with None, none ever has."""

    def __init__(
        self, text: str | None, tokenizer: PreTrainedTokenizerBase, rows: int, device: torch.device | None = None
    ) -> None:
        self._text, self._tokenizer = text, tokenizer
        self._width = len((text or "").encode())  # a token is a byte at least
        self._may_end: dict[int, bool] = {}
        self._passed = torch.zeros(rows, dtype=torch.bool, device=device)

    def passed(self, writing: Writing) -> Tensor:
        """``[B]`` bool for the rows of the batch; called once after every token."""
        if self._text is not None and writing.length:
            rows = writing.rows[~self._passed[writing.rows]]
            latest = writing.tokens[rows, max(0, writing.length - self._width) : writing.length]
            for row, ids in zip(rows.tolist(), latest.tolist(), strict=True):
                self._passed[row] = self._ends(ids[-1]) and self._text in self._decode(ids)
        return self._passed[writing.rows]

    def _ends(self, token: int) -> bool:
        """Whether the text could end in this token: a cheap look before the exact one."""
        if token not in self._may_end:
            piece = self._decode([token])
            self._may_end[token] = (self._text or "")[-1:] in piece or "\ufffd" in piece  # part of a character
        return self._may_end[token]

    def _decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))


class Mixer:
    """Mixes the steps of one batch that its gate opens for; all others stay as they were sampled."""

    def __init__(self, mixing: Mixing, temperature: float, neighbours: Neighbours, marker: Marker, seed: int) -> None:
        self._prob, self._temperature, self._neighbours, self._marker = mixing.prob, temperature, neighbours, marker
        self._gate = torch.Generator().manual_seed(seed)  # its own, so that closed gates change nothing

    def mix(self, logits: Tensor, choice: Choice, writing: Writing) -> Choice:
        """The choice for ``logits`` ``[B, V]``, with the likeliest token and its mixture in rows whose gate is open."""
        open_gates = torch.rand(len(logits), generator=self._gate).to(logits.device) < self._prob
        rows = (open_gates & ~self._marker.passed(writing)).nonzero().squeeze(-1)
        if not len(rows):
            return choice
        distribution = torch.log_softmax(logits[rows].float() / self._temperature, dim=-1)
        logp, anchors = distribution.max(dim=-1)
        token_ids = self._neighbours.candidates(anchors)
        weights = distribution.gather(-1, token_ids).softmax(-1)
        return Choice(
            choice.tokens.index_copy(0, rows, anchors),
            choice.logp.index_copy(0, rows, logp),
            Mixes(scattered(token_ids, rows, len(logits)), scattered(weights, rows, len(logits))),
        )


def scattered(values: Tensor, rows: Tensor, count: int) -> Tensor:
    """``values`` ``[m, k]`` in these rows of ``[count, k]``, 0 elsewhere."""
    return values.new_zeros(count, values.shape[1]).index_copy(0, rows, values)
