"""The settings that a response may change, each within bounds. A knob is named by its path in the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from components.config import Settings
from components.config.base import Section
from components.config.corrections import TokenTis
from components.config.judgement import QUARANTINE, REPAIR, ActionSettings
from components.config.objective import KlLoss
from components.config.reading import merge
from components.errors import InputError
from components.health.responses.repairs import SECOND_JUDGES
from components.types import Change


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting, its bounds, what the live line (``short``) and a sentence (``words``) call it, and what it is for.

    With ``relative`` the bounds are multiples of what the run started with. Where the settings have no such section (a
    KL term that is off) it comes with its defaults; ``section`` is that section where it is one of several kinds.
    """

    low: float
    high: float
    short: str
    words: str
    meaning: str
    relative: bool = False
    whole: bool = False
    section: Section | None = None


KNOBS: dict[str, Knob] = {
    "learner.lr": Knob(0.05, 1.0, "lr", "learning rate", "smaller steps do less damage", relative=True),
    "objective.ratio.high": Knob(
        0.5, 2.0, "clip-high", "upper clip bound", "room for unlikely tokens (2503.14476)", relative=True
    ),
    "objective.kl.beta": Knob(
        0.0, 0.1, "kl", "weight of the KL term", "holds the policy near the SFT checkpoint", section=KlLoss()
    ),
    "objective.entropy.coef": Knob(
        0.0, 0.02, "entropy bonus", "weight of the entropy bonus", "rewards being undecided (2505.22312)"
    ),
    "objective.correction.cap": Knob(
        1.0, 10.0, "correction cap", "cap on the sampler's correction", "less variance, more bias", section=TokenTis()
    ),
    "rollout.dynamic_sampling.max_attempts": Knob(
        1, 8, "attempts", "number of draws of the group filter", "to replace groups without a gradient", whole=True
    ),
    "rollout.max_repeats": Knob(
        1, 1024, "repeats", "number of groups of one question", "that a step trains on", whole=True
    ),
    "reward.shaping": Knob(0.0, 1.0, "shaping", "weight of the shaped reward", "of every part of it but accuracy"),
    "audit.agreement": Knob(0, 1, "agreement", "agreement of both verifiers", "right is what both accept", whole=True),
    SECOND_JUDGES: Knob(
        0, 1, "second judges", "second verifier as the judge", "it judges instead of the first", whole=True
    ),
}


def check_action(action: ActionSettings, rule: str) -> None:
    """Refuse an action that could never be carried out.

    Raises:
        InputError: an unknown knob, or no new value.
    """
    where = f"action of health rule {rule!r}"
    if action.knob in (QUARANTINE, REPAIR):
        return
    if action.knob not in KNOBS:
        near = get_close_matches(action.knob, KNOBS, n=1)
        how = f"did you mean {near[0]}?" if near else f"use one of: {', '.join([*KNOBS, QUARANTINE, REPAIR])}"
        raise InputError(f"unknown knob {action.knob!r}", where=where, how=how)
    if action.times is None and action.to is None:
        raise InputError(f"{action.knob} is to be changed, but not to what", where=where, how="add `times` or `to`")


def turn(
    action: ActionSettings, settings: Settings, started: Settings, in_force: Mapping[str, float]
) -> tuple[Settings, Change] | str:
    """The settings with one knob changed within its bounds, or the reason why it cannot be.

    Args:
        settings: the present ones.
        started: those that the run began with; relative bounds are multiples of them.
        in_force: present values of knobs that a controller moves, of which the settings have the start.
    """
    knob, given = KNOBS[action.knob], read(settings, action.knob)
    before = in_force.get(action.knob, given)
    if action.to is None and before is None:
        return f"{action.knob} has no value to multiply"
    wanted = action.to if action.to is not None else float(before or 0) * float(action.times or 1)
    origin = read(started, action.knob)
    scale = float(origin) if knob.relative and origin is not None else 1.0
    after: float = min(max(wanted, knob.low * scale), knob.high * scale)
    after = round(after) if knob.whole else after
    if before is not None and (after - before) * (wanted - before) <= 0:  # beyond its bounds already, perhaps
        return f"{action.knob} is {before:g} already"
    if after == given:
        return f"{action.knob} started from {after:g}, and its target has moved it"
    try:
        changed = with_knob(settings, action.knob, after)
    except ValidationError as error:
        return f"{action.knob} cannot be {after:g} here: {error.errors()[0]['msg']}"
    return changed, Change(action.knob, before, after)


def with_knob(settings: Settings, knob: str, value: float) -> Settings:
    """The settings with another value of one knob.

    Raises:
        ValidationError: they would be refused.
    """
    top = knob.partition(".")[0]
    parent, begins_as = knob.rpartition(".")[0], KNOBS[knob].section
    tree = {top: find(settings, top).model_dump(mode="json")}
    if begins_as is not None and find(settings, parent) is None:
        tree = merge(tree, nested(parent, begins_as.model_dump(mode="json")))
    tree = merge(tree, nested(knob, value))
    return Settings.model_validate({**dict(settings), **tree})


def read(settings: Settings, path: str) -> float | None:
    """The present value; None where the settings have no such section.

    A section that has no such field (a ratio without ``high``) reads as None too; changing it is refused then.
    """
    node = find(settings, path)
    return None if node is None else float(node)


def find(settings: Settings, path: str) -> Any:
    """A value or a section; None where there is none."""
    node: Any = settings
    for name in path.split("."):
        node = getattr(node, name, None)
    return node


def nested(path: str, value: Any) -> dict[str, Any]:
    """``a.b`` and a value as the tree of settings ``{a: {b: value}}``."""
    for name in reversed(path.split(".")):
        value = {name: value}
    return dict(value)
