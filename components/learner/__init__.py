"""One update of the policy.

- `base` — the `Learner` seam
- `batch` — groups -> tensors
- `cuts` — where a batch is cut into passes
- `clipping` — the norm of a gradient, and clipping by it
- `optimizer` — AdamW, clipping and schedules of every trainer
- `steadiness` — what an optimizer does to a sample of the weights
- `scoring` — log-probabilities of a batch
- `coefficients` — adaptive weights of KL and entropy
- `epochs` — which rows a supervised step trains on
- `signals` — what an update did, as scalars
- `torch_learner` — the learner: in this process, or in every one of several ranks
- `supervised` — the same for a loss over given texts, of stages `sft` and `dpo`
- `sharding` — how its weights, gradients and optimizer state lie in memory
- `state` — its checkpoints: one shard a rank, by `torch.distributed.checkpoint`
- `ranks` — who of several processes scores which rows
- `group`, `leader`, `follower` — the processes of one learner: rank 0 runs the loop, the others follow its commands;
  `supervised_leader` is rank 0 of a supervised one
- `inputs`, `scoring_module`, `activations` — how a forward pass is made
- `reference` — the policy that the run started from
- `gathered` — the weights of ranks, read one at a time
- `critic` — PPO's value model, which learns with the policy

`LEARNERS` maps ``learner.kind`` to its builder.
"""

from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor

from components.config import Settings
from components.learner.base import IN_FORCE, Learner, settings_checksum
from components.learner.batch import Batch, batch_of_rows, build_batch
from components.learner.follower import Start
from components.learner.group import Group
from components.learner.leader import Leader
from components.learner.reference import refer
from components.learner.torch_learner import TorchLearner
from components.policy import Policy

Weights = Mapping[str, Tensor]


def _ranks(policy: Policy, settings: Settings, weights: Weights | None, reference: bool) -> Learner:
    then = refer if reference else None
    begin = Start.of(_make(settings), policy, settings, then)
    return Leader(policy, begin, Group(settings.learner.ranks), weights)


def _torch(policy: Policy, settings: Settings, weights: Weights | None, reference: bool) -> Learner:
    if weights is not None:
        raise TypeError("a learner of one process takes a policy that has its weights")
    return _make(settings)(policy, reference=policy.reference() if reference else None)


def _make(settings: Settings) -> partial[TorchLearner]:
    own, temperature = settings.learner, settings.rollout.temperature
    return partial(TorchLearner, settings=own, objective=settings.objective, temperature=temperature)


LEARNERS: dict[str, Callable[[Policy, Settings, Weights | None, bool], Learner]] = {
    "torch": _torch,
    "deepspeed": _ranks,
    "fsdp2": _ranks,
}


def build_learner(
    policy: Policy, settings: Settings, weights: Weights | None = None, *, reference: bool = False
) -> Learner:
    """The learner that the settings name; it takes ``policy`` over and changes its weights.

    Args:
        weights: of several ranks, what they begin with where ``policy`` is an `outline`.
        reference: whether it keeps the weights that it begins with, for `Learner.reference`.
    """
    return LEARNERS[settings.learner.kind](policy, settings, weights, reference)


__all__ = [
    "IN_FORCE",
    "LEARNERS",
    "Batch",
    "Learner",
    "batch_of_rows",
    "build_batch",
    "build_learner",
    "settings_checksum",
]
