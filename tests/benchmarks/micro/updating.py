"""Ways of making one update on the same batch: our learner, and TRL's trainer.

Both have the same weights, groups, loss (token mean, clip 0.2, advantages by TRL's standard deviation), AdamW,
learning rate and bound of a pass. What is timed is the update alone: log-probabilities, loss, backward, clipping,
AdamW, and what either side notes of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from components.config.objective import ObjectiveSettings
from components.config.training import LearnerSettings
from components.learner.batch import Batch, build_batch
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
    """One of `WAYS`, with a model of its own; all of them have the same weights and groups."""
    return WAYS[name](policy_of(case.size, case.vocabulary), groups_of(case), case)


def learner(policy: Policy, groups: list[Group], case: Updated, **settings: Any) -> Updating:
    """`TorchLearner`; ``settings`` are further ones of the learner."""
    how = LearnerSettings(
        lr=RATE, betas=BETAS, warmup=0, grad_clip=1.0, micro_batch_tokens=case.pass_tokens, **settings
    )
    built = TorchLearner(policy, how, OBJECTIVE, temperature=1.0)
    batch, tokens, made = credited(built, policy, groups), tokens_in(groups), list[Update]()

    def way(seed: int) -> int:
        signals = built.step(batch, seed)
        made.append((signals["loss"], signals["grad_norm"]))
        return tokens

    return Updating(way, made)


def credited(built: TorchLearner, policy: Policy, groups: list[Group]) -> Batch:
    """The batch with its advantages."""
    return Credit(built, None, policy, OBJECTIVE).assign(build_batch(groups, PAD), groups, step=0).batch


def trl(policy: Policy, groups: list[Group], case: Updated, bf16: bool = False) -> Updating:
    """TRL's `GRPOTrainer`; advantages are made before, as ours are."""
    from tests.benchmarks.micro.trl_trainer import updater

    trainer = updater(policy.model, policy.tokenizer, groups, case.pass_tokens, use_cpu=True, bf16=bf16, **TRLS)
    batches, tokens, made = trainer.batches(), tokens_in(groups), list[Update]()

    def way(seed: int) -> int:
        made.append(trainer.update(batches))
        return tokens

    return Updating(way, made)


WAYS: dict[str, Callable[[Policy, list[Group], Updated], Updating]] = {
    "ours": learner,
    "ours whole": partial(learner, logits_at_once=WHOLE),
    "ours bf16": partial(learner, compute_dtype="bfloat16"),
    "trl": trl,
    "trl bf16": partial(trl, bf16=True),
}
"""bf16: weights, moments and sums of gradients stay in fp32 on both sides; only products are in bf16."""
