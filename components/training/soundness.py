"""What the loop knows of a step that must hold whatever its data: facts for `components.health.invariants`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace

from components.health.invariants import Broken, broken, broken_signals
from components.health.sampling_rules import Facts, usable
from components.rollout import Rollout
from components.training.assembly import Parts
from components.training.golden import Rejudged
from components.training.run import RunState
from components.training.update import Updated
from components.training.watching import looked
from components.types import Group


def usable_groups(parts: Parts, groups: Sequence[Group]) -> list[Group]:
    """The groups whose completions keep the rules of the sampling. All of them where nothing is guarded."""
    state = parts.state
    if not state.guard.enabled:
        return list(groups)
    settings, end_tokens = state.responder.settings, {parts.policy.eos_id}
    return [group for group in groups if usable(group, settings, end_tokens)]


def learnable(parts: Parts, rollout: Rollout) -> Rollout:
    """The rollout, trained on those groups alone that are usable and whose prompts are as they were read."""
    prompts = parts.state.prompts
    known = [group for group in rollout.trained if not prompts or prompts.get(group.prompt.id) == group.prompt]
    found = usable_groups(parts, known if parts.state.guard.enabled else rollout.trained)
    return replace(rollout, trained=tuple(found))


def nothing_learned(updated: Updated, rollout: Rollout, usable: Rollout) -> bool:
    """Whether a fault kept the whole step from being learned from: then it does not count, and is made again."""
    refused = updated.signals.get("batch_torn") and "grad_norm" not in updated.signals
    return bool(refused) or (bool(rollout.trained) and not usable.trained)


Inspected = tuple[dict[str, float], list[Broken]]


def inspected(parts: Parts, rollout: Rollout, updated: Updated, golden: Future[list[Rejudged]]) -> Inspected:
    """As `inspect`; nothing where the monitor is off."""
    nothing: Inspected = {}, []
    return looked(parts.state, lambda: inspect(parts, rollout, updated, golden.result()), nothing)


def inspect(parts: Parts, rollout: Rollout, updated: Updated, golden: Sequence[Rejudged]) -> Inspected:
    """Signals of a step's invariants, and those that do not hold. ``golden`` is what the verifier has judged again.

    The run's state must still be that before the step: the prompts of the step before are part of it.
    """
    state, sampled = parts.state, rollout.sampled
    signals = {f"schedule_{name}": value for name, value in rollout.schedule.items()}
    facts = Facts(
        settings=state.responder.settings,
        signals=updated.signals | signals,
        sampled=sampled,
        ends={parts.policy.eos_id},
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
