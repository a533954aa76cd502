"""The experts that sampled tokens went to, kept for the learner (R3, 2510.11370)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor

from components.policy.routing import UNKNOWN, Router, Routes
from components.types import Completion


class RouteLog:
    """Routes of one batch while it is decoded: of the prompts, then of one token of each row after the other.

    Without a router (a dense model, or not requested) nothing is kept.
    """

    def __init__(self, router: Router | None, prompts: Sequence[Sequence[int]], n: int) -> None:
        self._router, self._prompts, self._n = router, prompts, n
        self._of_prompts: Routes | None = None
        self._of_tokens: list[tuple[Tensor, Routes]] = []  # rows that read a token, and [rows, layers, k]

    def note_prompts(self) -> None:
        """Keep what the prompts' pass chose."""
        if self._router is not None:
            self._of_prompts = self._router.take(len(self._prompts)).cpu().numpy()

    def note_tokens(self, rows: Tensor) -> None:
        """Keep what the pass over one token of each of ``rows`` chose; finished rows may be among them."""
        if self._router is not None:
            self._of_tokens.append((rows.cpu(), self._router.take(len(rows))[:, 0].cpu().numpy()))

    def attached(self, completions: Sequence[Completion]) -> list[Completion]:
        """The completions with their routes, ``[prompt and response without its last token, layers, k]``."""
        if self._of_prompts is None:
            return list(completions)
        width = self._of_prompts.shape[1]
        written = np.full((len(completions), len(self._of_tokens), *self._of_prompts.shape[2:]), UNKNOWN, np.int16)
        for step, (rows, routes) in enumerate(self._of_tokens):
            written[rows.numpy(), step] = routes
        found = []
        for row, completion in enumerate(completions):
            prompt = row // self._n
            own = self._of_prompts[prompt, width - len(self._prompts[prompt]) :]
            read = written[row, : len(completion.token_ids) - 1]
            found.append(replace(completion, routes=np.concatenate([own, read])))
        return found
