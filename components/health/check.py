"""Are these rules sound? Checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from components.config.judgement import RuleSettings
from components.health.monitor import Monitor
from components.health.responses.knobs import check_action


def check_rules(rules: Mapping[str, RuleSettings]) -> None:
    """Raise an `InputError` for the first malformed rule or impossible action."""
    Monitor(rules)
    for name, rule in rules.items():
        for action in rule.action:
            check_action(action, name)
