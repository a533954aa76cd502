"""Ways of making one update on the same batch: our learner, and TRL's trainer.

Both have the same weights, groups, loss (token mean, clip 0.2, advantages by TRL's standard deviation), AdamW,
learning rate and bound of a pass. What is timed is the update alone: log-probabilities, loss, backward, clipping,
AdamW, and what either side notes of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from components.config.objective import ObjectiveSettings
from components.config.training import LOGITS_AT_ONCE, LearnerSettings
from components.learner import Batch, build_batch
from components.learner.torch_learner import TorchLearner
from components.policy import Policy
from components.training.credit import Credit
from components.types import Group
from tests.benchmarks.micro.agreement import Update
from tests.benchmarks.micro.cases import Updated
from tests.benchmarks.micro.groups import groups_of, tokens_in
from tests.benchmarks.micro.rates import Way
from tests.benchmarks.micro.shapes import PAD, policy_of

WHOLE = 2**40
"""Logits at once: all of them."""
RATE, BETAS = 1e-5, (0.9, 0.95)
OBJECTIVE = ObjectiveSettings.model_validate(
    {
        "advantage": {"kind": "grpo", "std": "unbiased", "eps": 1e-4},
        "ratio": {"kind": "clip", "low": 0.2, "high": 0.2},
        "correction": None,
    }
)
TRLS: dict[str, Any] = {
    "loss_type": "dapo",
    "learning_rate": RATE,
    "adam_beta1": BETAS[0],
    "adam_beta2": BETAS[1],
    "weight_decay": 0.0,
    "lr_scheduler_type": "constant",
    "max_grad_norm": 1.0,
}


class Updating(NamedTuple):
    """A way, and the updates that it has made so far."""

    way: Way
    made: list[Update]


def updating(name: str, case: Updated) -> Updating:
    """One of the ways, with a model of its own; all of them have the same weights and groups."""
    policy, groups = policy_of(case.size, case.vocabulary), groups_of(case)
    if name == "trl":
        return trl(policy, groups, case)
    return learner(policy, groups, case, {"ours": LOGITS_AT_ONCE, "ours whole": WHOLE}[name])


def learner(policy: Policy, groups: list[Group], case: Updated, logits: int) -> Updating:
    """`TorchLearner`."""
    settings = LearnerSettings(
        lr=RATE, betas=BETAS, warmup=0, grad_clip=1.0, micro_batch_tokens=case.pass_tokens, logits_at_once=logits
    )
    built = TorchLearner(policy, settings, OBJECTIVE, temperature=1.0)
    batch, tokens, made = credited(built, policy, groups), tokens_in(groups), list[Update]()

    def way(seed: int) -> int:
        signals = built.step(batch, seed)
        made.append((signals["loss"], signals["grad_norm"]))
        return tokens

    return Updating(way, made)


def credited(built: TorchLearner, policy: Policy, groups: list[Group]) -> Batch:
    """The batch with its advantages."""
    return Credit(built, None, policy, OBJECTIVE).assign(build_batch(groups, PAD), groups, step=0).batch


def trl(policy: Policy, groups: list[Group], case: Updated) -> Updating:
    """TRL's `GRPOTrainer`; advantages are made before, as ours are."""
    from tests.benchmarks.micro.trl_trainer import updater

    trainer = updater(policy.model, policy.tokenizer, groups, case.pass_tokens, use_cpu=True, **TRLS)
    batches, tokens, made = trainer.batches(), tokens_in(groups), list[Update]()

    def way(seed: int) -> int:
        made.append(trainer.update(batches))
        return tokens

    return Updating(way, made)
