"""The frozen policy that the run started from, for KL."""

from __future__ import annotations

from torch import Tensor

from components.learner import Batch
from components.learner.scoring import score_all
from components.policy import Policy


class Reference:
    """Scores batches under the SFT checkpoint, a ``policy`` that nothing changes."""

    def __init__(self, policy: Policy, temperature: float, micro_batch_tokens: int) -> None:
        self.policy, self._temperature, self._tokens = policy, temperature, micro_batch_tokens

    @property
    def pad_id(self) -> int:
        return self.policy.pad_id

    def logprobs(self, batch: Batch) -> Tensor:
        """Log-probabilities of the response tokens, ``[B, R]`` fp32 nats."""
        return score_all(self.policy.model, batch, self._temperature, self._tokens).logp
