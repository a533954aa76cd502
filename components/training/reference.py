"""The frozen policy that the run started from, for KL."""

from __future__ import annotations

from torch import Tensor

from components.config.training import LearnerSettings
from components.learner import Batch
from components.learner.scoring import score_all
from components.policy import Policy


class Reference:
    """Scores batches under the SFT checkpoint, a ``policy`` that nothing changes."""

    def __init__(self, policy: Policy, temperature: float, learner: LearnerSettings) -> None:
        """``learner`` says how many tokens a pass has, and in which precision it computes: that of the learner."""
        self.policy, self._temperature, self._learner = policy, temperature, learner

    @property
    def pad_id(self) -> int:
        return self.policy.pad_id

    def logprobs(self, batch: Batch) -> Tensor:
        """Log-probabilities of the response tokens, ``[B, R]`` fp32 nats."""
        how, model = self._learner, self.policy.model
        tokens, dtype = how.micro_batch_tokens, how.compute_dtype
        return score_all(model, batch, self._temperature, tokens, compute_dtype=dtype).logp
