"""Whether a run needs the frozen policy that it started from, for KL."""

from __future__ import annotations

from components.config import Settings
from components.health.rules import compile_rule

SIGNAL, KNOB = "kl_ref", "objective.kl.beta"


def reads_reference(settings: Settings) -> bool:
    """Whether the loss, the reward or a health rule reads the KL to the reference, or a rule may have the loss read
    it."""
    rules = settings.health.rules if settings.health.enabled else {}
    compiled = [compile_rule(name, rule) for name, rule in rules.items()]
    read = any(SIGNAL in condition.signals for rule in compiled for condition in rule.conditions)
    switched_on = any(action.knob == KNOB for rule in rules.values() for action in rule.action)
    return settings.objective.kl is not None or read or switched_on
