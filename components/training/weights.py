"""From learner to sampler, after every step."""

from __future__ import annotations

from components.learner import Learner
from components.rollout import Engine


def hand_over(learner: Learner, engine: Engine) -> dict[str, float]:
    """Let the engine sample from the learner's weights, and say how many tensors of them hold a NaN or an infinity.

    Such weights are not handed over: nothing can be sampled from them, and the step must live on until its monitor has
    spoken. What happens where nobody takes them back is `conduct.respond`'s business.
    """
    weights = learner.weights()
    broken = sum(not bool(tensor.isfinite().all()) for tensor in weights.values())
    if not broken:
        engine.load_weights(weights)
    return {"nonfinite_weights": float(broken)}
