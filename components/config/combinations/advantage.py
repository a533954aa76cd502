"""From rewards to the weight of a token: advantages, aggregation, and what stands in the reward."""

from __future__ import annotations

from collections.abc import Iterator

from components.config.advantages import (
    GdpoAdvantage,
    GrpoAdvantage,
    HrasAdvantage,
    LeaveOneOutAdvantage,
    MaxRlAdvantage,
)
from components.config.objective import FixedAggregation, KlReward, ObjectiveSettings
from components.config.ppo import GaeAdvantage
from components.config.ratios import GmpoRatio, GspoRatio
from components.config.settings import Sections


def length_and_difficulty(s: Sections) -> Iterator[str]:
    """The two biases that Dr. GRPO removes."""
    advantage, aggregation = s.objective.advantage, s.objective.aggregation
    if isinstance(aggregation, FixedAggregation):
        if aggregation.tokens < s.rollout.max_new_tokens:
            yield (
                f"objective.aggregation.tokens ({aggregation.tokens}) is the generation budget (2503.20783), which "
                f"cannot be below rollout.max_new_tokens ({s.rollout.max_new_tokens}); set both to the same"
            )
        if _std_of_group(s.objective) and not aggregation.allow_std:
            yield (
                f"objective.aggregation.kind fixed with objective.advantage.kind {advantage.kind} divided by the "
                "group's std is not Dr. GRPO (2503.20783), which removes both biases; set objective.advantage to "
                "{kind: grpo, std: none}, or objective.aggregation.allow_std to true if this is meant"
            )
    centred = getattr(advantage, "std", "") == "none"
    forced = isinstance(s.objective.ratio, GspoRatio | GmpoRatio)  # they know no other aggregation
    if centred and aggregation.kind == "sequence_mean" and not forced:
        yield (
            "objective.advantage.std none removes a difficulty bias that objective.aggregation.kind sequence_mean's "
            "length bias replaces (2503.20783); use token_mean or fixed"
        )


def kl_in_the_reward(s: Sections) -> Iterator[str]:
    if isinstance(s.objective.kl, KlReward) and _std_of_group(s.objective):
        yield (
            f"objective.kl.kind k1_reward with objective.advantage.kind {s.objective.advantage.kind}: divided by the "
            "group's std, a group that is all right gets a full-size gradient made of KL noise; put KL into the loss "
            "(objective.kl.kind k2), or use an advantage without that std (grpo or leave_one_out with std none, "
            "batch_std, gae)"
        )


def negative_rewards(s: Sections) -> Iterator[str]:
    if not isinstance(s.objective.advantage, MaxRlAdvantage):
        return
    negative = {
        "reward.soft_overlong": s.reward.soft_overlong is not None and s.reward.weight("overlong") > 0,
        "objective.kl.kind k1_reward": isinstance(s.objective.kl, KlReward),
        **{f"reward.functions.{name}.weight": one.weight < 0 for name, one in s.reward.functions.items()},
    }
    for name in (name for name, found in negative.items() if found):
        yield (
            f"objective.advantage.kind maxrl divides by the mean reward of a group (2602.02710), which {name} makes "
            "zero or negative; leave that out, or use another advantage"
        )


def scales_that_cancel(s: Sections) -> Iterator[str]:
    """A part of the reward that is normalised by itself has no scale left."""
    advantage, weights = s.objective.advantage, s.reward.weights
    if isinstance(advantage, HrasAdvantage):
        if s.reward.consistency is None:
            yield (
                "objective.advantage.kind hras splits off the consistency of an answer (2606.14691), and there is no "
                "reward.consistency; set it, or use grpo"
            )
        if weights.get("consistency", 1.0) != 1.0:
            yield (
                "reward.weights.consistency must be 1 with objective.advantage.kind hras, which normalises that part "
                "by itself (2606.14691): another scale cancels, and 0 removes it; set objective.advantage.beta instead"
            )
    if isinstance(advantage, GdpoAdvantage):
        functions = {f"reward.functions.{name}.weight": one.weight for name, one in s.reward.functions.items()}
        given = {f"reward.weights.{name}": weight for name, weight in weights.items()} | functions
        if scaled := sorted(name for name, weight in given.items() if abs(weight) not in (0.0, 1.0)):
            yield (
                f"{', '.join(scaled)} cancels in objective.advantage.kind gdpo, which normalises every part by itself "
                "(2601.05242); set objective.advantage.weights instead"
            )
        known = [name for name in s.reward.names if given.get(f"reward.weights.{name}", 1.0) != 0.0]
        if unknown := sorted(advantage.weights.keys() - set(known)):
            yield (
                f"objective.advantage.weights names {', '.join(unknown)}; the parts of the reward (section reward) "
                f"whose weight is not 0 are {', '.join(known)}"
            )


def critic(s: Sections) -> Iterator[str]:
    """Advantages from a critic take no group's baseline."""
    o = s.objective
    if not isinstance(o.advantage, GaeAdvantage):
        return
    if s.rollout.two_stage is not None:
        yield (
            "rollout.two_stage ends groups that are likely to be all right or all wrong, and a critic "
            "(objective.advantage.kind gae) learns from these, too: it would see undecided ones alone; set it to null"
        )
    for name, value in (("advantage_cap", o.advantage_cap), ("redistribution", o.redistribution)):
        if value is not None:
            yield (
                f"objective.{name} changes the one advantage that a group gives a completion; objective.advantage.kind "
                "gae has one for each token; leave it out, or use another advantage"
            )


def critic_schedule(s: Sections) -> Iterator[str]:
    if not isinstance(s.objective.advantage, GaeAdvantage):
        return
    if s.learner.critic.pretrain_steps >= s.train.steps:
        yield (
            f"learner.critic.pretrain_steps ({s.learner.critic.pretrain_steps}) leaves none of train.steps "
            f"({s.train.steps}) to the policy"
        )
    if s.objective.advantage.fallback == "group" and s.rollout.group_size == 1:
        yield (
            "objective.advantage.fallback group with rollout.group_size 1 is the completion's own reward and teaches "
            "nothing; use batch"
        )


def groups_of_one(s: Sections) -> Iterator[str]:
    if s.rollout.group_size > 1:
        return
    if not isinstance(s.objective.advantage, GaeAdvantage):
        yield (
            "rollout.group_size 1 with the group's baseline of objective.advantage.kind "
            f"{s.objective.advantage.kind} gives only zeros; use 2 or more, or advantage gae"
        )
    if s.rollout.dynamic_sampling is not None:
        yield (
            "rollout.dynamic_sampling drops groups whose accuracy is constant (2503.14476), and with "
            "rollout.group_size 1 every one is; use 2 or more, or leave it out"
        )


def overlong(s: Sections) -> Iterator[str]:
    overlong = s.reward.soft_overlong
    if overlong is None:
        return
    if overlong.limit > s.rollout.max_new_tokens:
        yield (
            f"reward.soft_overlong.limit ({overlong.limit}) is beyond rollout.max_new_tokens "
            f"({s.rollout.max_new_tokens}): the penalty could never reach -1"
        )
    if s.objective.overlong_filter:
        yield (
            "reward.soft_overlong with objective.overlong_filter: the completions that are penalised most are the ones "
            "left out of the loss, so the penalty only praises the others of their group (2503.14476 has one after the "
            "other); keep one of them"
        )


def _std_of_group(o: ObjectiveSettings) -> bool:
    """Whether a group's advantages are divided by its own standard deviation."""
    if isinstance(o.advantage, GrpoAdvantage | LeaveOneOutAdvantage):
        return o.advantage.std != "none"
    return isinstance(o.advantage, GdpoAdvantage | HrasAdvantage)
