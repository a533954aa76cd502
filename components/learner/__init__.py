"""One update of the policy.

- `base` — the `Learner` seam
- `batch` — groups -> tensors
- `cuts` — where a batch is cut into passes
- `optimizer` — AdamW, clipping and schedules of every trainer
- `scoring` — log-probabilities of a batch
- `coefficients` — adaptive weights of KL and entropy
- `epochs` — which rows a supervised step trains on
- `signals` — what an update did, as scalars
- `torch_learner` — the embedded learner
- `critic` — PPO's value model, which learns beside the policy

`LEARNERS` maps ``learner.kind`` to its class.
"""

from pathlib import Path

from components.config import Settings
from components.learner.base import Learner
from components.learner.batch import Batch, batch_of_rows, build_batch
from components.learner.torch_learner import TorchLearner
from components.policy import Policy

LOGS = Path("logs")

LEARNERS: dict[str, type[TorchLearner]] = {"torch": TorchLearner}


def build_learner(policy: Policy, settings: Settings, logs: Path = LOGS) -> Learner:
    """The learner that the settings name; it takes ``policy`` over and changes its weights.

    Processes that it starts write their logs into the folder ``logs``; ``close`` ends them.
    """
    learner = LEARNERS[settings.learner.kind]
    return learner(policy, settings.learner, settings.objective, settings.rollout.temperature)


__all__ = ["LEARNERS", "Batch", "Learner", "batch_of_rows", "build_batch", "build_learner"]
