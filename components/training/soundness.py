"""What the loop knows of a step that must hold whatever its data: facts for `components.health.invariants`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from components.config import Settings
from components.config.objective import KlReward
from components.health.facts import Facts
from components.health.invariants import Broken, broken, broken_signals
from components.health.sampling_rules import usable
from components.learner import Batch
from components.objectives.advantages import rewards_of
from components.rollout import Rollout
from components.training.assembly import Parts
from components.training.golden import Rejudged
from components.training.run import RunState
from components.types import Group

CENTRED = ("grpo", "batch_std", "leave_one_out")
"""Advantages that are a positive factor times reward minus the mean of the group."""


@dataclass(frozen=True)
class Updated:
    """The signals of an update.

    ``agreement`` is by family the covariance of its rewards and advantages, where those are centred; ``raised`` says by
    family whether it did what it was made for (`components.training.first_order`); ``in_force`` are the checksums of
    the settings that it was to have, and had.
    """

    signals: dict[str, float] = field(default_factory=dict)
    agreement: Mapping[str, float] = field(default_factory=dict)
    raised: Mapping[str, bool] = field(default_factory=dict)
    in_force: tuple[float, float] | None = None


def agreement(batch: Batch, groups: Sequence[Group], settings: Settings) -> dict[str, float]:
    """By family, the sum over completions of (reward - mean of the group) times advantage.

    Empty where advantages are not simply centred rewards. Not negative in a sound step.
    """
    if batch.advantages is None or not batch.responses or not are_centred(settings):
        return {}
    rewards = rewards_of(groups)
    counts = rewards.scorable.sum(1, keepdim=True).clamp(min=1)
    centred = torch.where(rewards.scorable, rewards.total - rewards.total.sum(1, keepdim=True) / counts, 0.0)
    of_row = batch.advantages.sum(1) / batch.response_mask.sum(1).clamp(min=1)  # each token of a row has the same
    found: dict[str, float] = {}
    for number, product in zip(
        batch.group.tolist(), (centred[batch.group, batch.member] * of_row).tolist(), strict=True
    ):
        family = groups[number].prompt.family
        found[family] = found.get(family, 0.0) + product
    return found


def usable_groups(parts: Parts, groups: Sequence[Group]) -> list[Group]:
    """The groups whose completions keep the rules of the sampling. All of them where nothing is guarded."""
    state = parts.state
    if not state.guard.enabled:
        return list(groups)
    settings, end_tokens = state.responder.settings, {parts.reference.policy.eos_id}
    return [group for group in groups if usable(group, settings, end_tokens)]


def learnable(parts: Parts, rollout: Rollout) -> Rollout:
    """The rollout, trained on those groups alone that are usable and whose prompts are as they were read."""
    prompts = parts.state.prompts
    known = [group for group in rollout.trained if prompts.get(group.prompt.id, group.prompt) == group.prompt]
    found = usable_groups(parts, known if parts.state.guard.enabled else rollout.trained)
    return replace(rollout, trained=tuple(found))


def nothing_learned(updated: Updated, rollout: Rollout, usable: Rollout) -> bool:
    """Whether a fault kept the whole step from being learned from: then it does not count, and is made again."""
    return bool(updated.signals.get("batch_torn")) or (bool(rollout.trained) and not usable.trained)


def are_centred(settings: Settings) -> bool:
    """Whether advantages are simply centred rewards."""
    how = settings.objective
    return how.advantage.kind in CENTRED and how.redistribution is None and not isinstance(how.kl, KlReward)


def inspect(
    parts: Parts, rollout: Rollout, updated: Updated, golden: Sequence[Rejudged]
) -> tuple[dict[str, float], list[Broken]]:
    """Signals of a step's invariants, and those that do not hold. ``golden`` is what the verifier has judged again.

    The run's state must still be that before the step: the prompts of the step before are part of it.
    """
    state, sampled = parts.state, rollout.sampled
    signals = {f"schedule_{name}": value for name, value in rollout.schedule.items()}
    facts = Facts(
        settings=state.responder.settings,
        signals=updated.signals | signals,
        sampled=sampled,
        ends={parts.reference.policy.eos_id},
        trained=rollout.trained,
        prompts=state.prompts,
        agreement=updated.agreement,
        rejudged=[(one.item.prompt.id, one.item.accuracy, one.accuracy) for one in golden],
        in_force=updated.in_force,
    )
    seen = {group.prompt.id for group in sampled}
    signals["schedule_repeated"] = len(seen & state.evidence.drawn) / max(1, len(seen))
    signals |= _of_the_verifier(parts, golden) | _of_draws(state, sampled)
    if (against := state.evidence.signs.observe(updated.raised)) is not None:
        signals["reversal_evidence"] = against
    found = broken(facts)
    return signals | broken_signals(found), found


def _of_the_verifier(parts: Parts, golden: Sequence[Rejudged]) -> dict[str, float]:
    """How many golden items the verifier judges otherwise; where it does, or cannot judge some, how many of all items
    the second one judges as the first did when they were new."""
    due = len(parts.state.evidence.golden.due(parts.state.step))
    differ = sum(one.differs for one in golden) / len(golden) if golden else 0.0
    if not differ and len(golden) == due:
        return {"golden_differ": 0.0} if golden else {}
    agrees = second_agrees(parts)
    return {"golden_differ": differ, **({} if agrees is None else {"golden_second": agrees})}


def second_agrees(parts: Parts) -> float | None:
    """Share of the golden items that the second verifier judges as the first did when they were new."""
    items = parts.state.evidence.golden.items
    second = parts.second.accuracies([(item.prompt, item.text) for item in items])
    known = [one == item.accuracy for one, item in zip(second, items, strict=True) if one is not None]
    return sum(known) / len(known) if known else None


def _of_draws(state: RunState, sampled: Sequence[Group]) -> dict[str, float]:
    """Evidence that completions repeat more often than they should, of the server where it is largest."""
    how = state.responder.settings.rollout
    if how.mixing is not None or how.tool is not None or not how.temperature:
        return {}
    found = state.evidence.draws.observe(sampled)
    return {"repeat_evidence": max(found.values())} if found else {}
