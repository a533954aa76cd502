"""`evenkeel rules`: a file of health rules, compiled and laid out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.config.judgement import ActionSettings, RuleSettings
from flows.display.output import field
from flows.judging.audit_log import LEVEL_STYLES


def show(console: Console, rules: Mapping[str, RuleSettings]) -> None:
    """One row a rule, and how many there are of each level."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("rule", "level", "condition", "streak", "why"):
        table.add_column(name, no_wrap=name in ("rule", "level"), justify="right" if name == "streak" else "left")
    for name, rule in rules.items():
        level = field(rule.level, LEVEL_STYLES.get(rule.level, ""))
        table.add_row(field(name), level, Text(conditions(rule)), str(rule.streak), field(rule.why))
    console.print(table)
    levels = Counter(str(rule.level) for rule in rules.values())
    counts = ", ".join(f"{levels[level]} {level}" for level in LEVEL_STYLES if levels[level])
    console.print(f"{len(rules)} rules, all compile: {counts}", highlight=False)


def conditions(rule: RuleSettings) -> str:
    """When a rule speaks, what it then changes, and what else is special about it."""
    lines = [rule.when]
    if rule.unless:
        lines.append(f"unless {rule.unless}")
    if rule.cooldown:
        lines.append(f"again after {rule.cooldown} steps")
    lines += [_action(action) for action in rule.action]
    if rule.optional:
        lines.append("optional")
    return "\n".join(lines)


def _action(action: ActionSettings) -> str:
    change = (
        f" times {action.times:g}"
        if action.times is not None
        else f" to {action.to:g}"
        if action.to is not None
        else ""
    )
    return f"-> {action.knob}{change}"
