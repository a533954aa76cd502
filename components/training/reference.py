"""The frozen policy that the run started from, for KL."""

from __future__ import annotations

import torch
from torch import Tensor

from components.learner import Batch
from components.policy import Policy, response_logprobs


class Reference:
    """Scores batches under the SFT checkpoint."""

    def __init__(self, policy: Policy, temperature: float, micro_batch_tokens: int) -> None:
        self._policy, self._temperature, self._tokens = policy.frozen_copy(), temperature, micro_batch_tokens

    @property
    def pad_id(self) -> int:
        return self._policy.pad_id

    @torch.no_grad()
    def logprobs(self, batch: Batch) -> Tensor:
        """Log-probabilities of the response tokens, ``[B, R]`` fp32 nats."""
        parts = []
        for rows in batch.micro_batches(self._tokens):
            part = batch.rows(rows)
            stats = response_logprobs(
                self._policy.model, part.input_ids, part.attention_mask, part.responses, self._temperature
            )
            parts.append(stats.logp)
        return torch.cat(parts)
