"""The frozen policy that the run started from, for KL; and the tokens that end and pad its texts."""

from __future__ import annotations

from torch import Tensor

from components.learner import Batch, Learner
from components.policy import Policy


class Reference:
    """Scores batches under the SFT checkpoint, which the learner keeps. ``policy`` lends its tokenizer.

    Args:
        read: whether anything reads the KL; without that the learner has no reference.
    """

    def __init__(self, policy: Policy, learner: Learner, *, read: bool = True) -> None:
        self.policy, self._learner, self.read = policy, learner, read

    @property
    def pad_id(self) -> int:
        return self.policy.pad_id

    def logprobs(self, batch: Batch) -> Tensor:
        """Log-probabilities of the response tokens, ``[B, R]`` fp32 nats."""
        return self._learner.reference(batch)
