"""From learner to sampler, after every step."""

from __future__ import annotations

from typing import Protocol

from components.learner.base import Learner
from components.policy.weights import Weights


class Sampler(Protocol):
    """What samples, now or later."""

    def load_weights(self, weights: Weights) -> None:
        """Sample from these from now on."""


def hand_over(learner: Learner, sampler: Sampler) -> dict[str, float]:
    """Let the sampler sample from the learner's weights, and state how many tensors of them hold a NaN or an infinity.

    Such weights are not handed over: nothing can be sampled from them, and the step must live on until its monitor has
    fired. What happens where they are not taken back is `conduct.respond`'s business.
    """
    broken = learner.broken()
    if not broken:
        sampler.load_weights(learner.weights())
    return {"nonfinite_weights": float(broken)}
