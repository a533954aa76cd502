"""`evenkeel audit`: the health rules over a log that any trainer wrote. `evenkeel rules`: a file of them, laid out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.config.judgement import ActionSettings, RuleSettings
from components.errors import EXIT_NO_CANDIDATE
from components.health.monitor import GRAVE, replay, unjudged, worst
from components.health.other_runs import FALL, judge_other
from components.health.readers import Log, read_log
from components.health.rulebook import DEFAULT_RULES, LOG_RULES, load_rules
from components.health.rules import compile_rule
from components.health.summaries.markdown import plain
from components.printing import printable
from components.types import Verdict
from flows.display.output import field, markdown_table, plain_table, say

LEVEL_STYLES = {"warn": "yellow", "intervene": "yellow", "rollback": "red", "stop": "red"}
SHOWN = 3
"""Values of each signal that the table shows; ``--json`` has all that a verdict carries."""
NAMED = 12
"""Names that were not read, of which the first are shown."""


@dataclass(frozen=True)
class Audit:
    """What the rules say of a log, and of which of them that is true."""

    path: Path
    log: Log
    verdicts: list[Verdict]
    judged: list[str]
    unjudged: Mapping[str, list[str]]
    """Rules that read signals of which the log has none: the signals."""
    too_short: Mapping[str, int]
    """Rules that need more steps than the log has: how many."""

    @property
    def grave(self) -> list[Verdict]:
        """What rules of level rollback or stop said."""
        return [verdict for verdict in self.verdicts if verdict.level in GRAVE]

    @property
    def exit_code(self) -> int:
        """0, or 3 if a rule of level rollback or stop fired."""
        return EXIT_NO_CANDIDATE if self.grave else 0

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        steps = [record.step for record in self.log.records]
        return {
            "log": str(self.path),
            "format": self.log.format,
            "trainer": self.log.trainer,
            "steps": len(steps),
            "first_step": steps[0],
            "last_step": steps[-1],
            "signals": seen(self.log),
            "remarks": self.log.remarks,
            "unread": self.log.unread,
            "proposal": self.log.proposal,
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "worst": worst(self.verdicts),
            "judged": self.judged,
            "unjudged": dict(self.unjudged),
            "too_short": dict(self.too_short),
            "exit_code": self.exit_code,
        }


def audit_log(path: Path, format: str, names: Path | None, rules: Path | None) -> Audit:
    """Judge a log by these rules, or by those for what it is: a run of ours, or of another trainer.

    Raises:
        InputError: rules, mapping or log are not as they must be.
    """
    book = None if rules is None else load_rules(rules)
    log = read_log(path, format, names)
    return judge(path, log, book or load_rules(DEFAULT_RULES if of_ours(log) else LOG_RULES))


def of_ours(log: Log) -> bool:
    """Whether the log is of a run of ours; what the callback writes has our names, too, but is not."""
    return log.ours and not any(FALL in record.signals for record in log.records)


def judge(path: Path, log: Log, rules: Mapping[str, RuleSettings]) -> Audit:
    """Replay the rules over what was read."""
    verdicts = (replay if of_ours(log) else judge_other)(rules, log.records)
    triggered = {verdict.rule for verdict in verdicts}
    missing_signals = {name: signals for name, signals in unjudged(rules, log.records).items() if name not in triggered}
    needed = {
        name: shortest(name, settings)
        for name, settings in rules.items()
        if name not in triggered | missing_signals.keys()
    }
    too_short = {name: count for name, count in needed.items() if count > len(log.records)}
    judged = [name for name in rules if name not in missing_signals and name not in too_short]
    return Audit(path, log, verdicts, judged, missing_signals, too_short)


def shortest(name: str, settings: RuleSettings) -> int:
    """How many steps a log must have at least for the rule to fire."""
    windows = [reading.count or 1 for reading in compile_rule(name, settings).when.nested]
    return max(settings.streak, *windows)


def seen(log: Log) -> list[str]:
    """The signals that the log has in some step."""
    return sorted({signal for record in log.records for signal in record.signals})


def head(audit: Audit) -> str:
    """What was read, in a line."""
    steps = [record.step for record in audit.log.records]
    span = f"{len(steps)} steps from {steps[0]} to {steps[-1]}"
    return f"{audit.path}: {audit.log.trainer}, {span}, {len(seen(audit.log))} signals"


def show(console: Console, audit: Audit) -> None:
    """What was read, what the rules say, and which of them could not say anything."""
    say(console, head(audit))
    say(console, *(f"  - {remark}" for remark in audit.log.remarks), style="yellow")
    console.print(_verdicts(audit.verdicts) if audit.verdicts else Text("no rule fired", "green"))
    console.print(
        Text(f"could judge {len(audit.judged)} rules: ", "bold") + field(", ".join(audit.judged) or "none", "not bold"),
        soft_wrap=True,
    )
    _unread(console, audit.log)
    _rules(console, "too few steps for", [f"{name} (needs {count})" for name, count in audit.too_short.items()])
    _rules(console, "cannot judge", [f"{name} (no {', '.join(missing)})" for name, missing in audit.unjudged.items()])


def _unread(console: Console, log: Log) -> None:
    """Which numbers no rule looked at, and a mapping to begin with."""
    if log.unread:
        more = f" and {len(log.unread) - NAMED} more (--json has all)" if len(log.unread) > NAMED else ""
        names = ", ".join(log.unread[:NAMED]) + more
        console.print(Text(f"not read, {len(log.unread)} names: ", "bold") + field(names, "not bold"), soft_wrap=True)
    if log.proposal:
        console.print(Text("look this over, save it, and give it to --names, to have more of it judged:", "bold"))
        say(console, *(f"  {line}" for line in log.proposal.splitlines()))


def _verdicts(verdicts: list[Verdict]) -> Table:
    columns = ("step", "level", "rule", "why", "latest values")
    table = plain_table(*columns, right=["step"], no_wrap=["step", "level", "rule"])
    for verdict in verdicts:
        level = field(verdict.level, LEVEL_STYLES.get(verdict.level, ""))
        evidence = "\n".join(f"{printable(name)} {_values(values)}" for name, values in verdict.evidence.items())
        table.add_row(str(verdict.step), level, field(verdict.rule), field(verdict.reason), Text(evidence))
    return table


def _values(values: list[float | None]) -> str:
    """The latest values; what was NaN or infinite is said so."""
    shown = ["not finite" if value is None else f"{value:.4g}" for value in values[-SHOWN:]]
    return ", ".join(shown) or "-"


def _rules(console: Console, label: str, names: list[str]) -> None:
    if names:
        console.print(Text(f"{label} {len(names)} rules:", "bold"))
        say(console, *(f"  {name}" for name in names))


def markdown(audit: Audit) -> str:
    """The same for the Prefect UI."""
    rows = [(str(one.step), one.level, one.rule, one.reason) for one in audit.verdicts]
    table = markdown_table(("step", "level", "rule", "why"), rows) if rows else "No rule fired."
    missing_signals = [f"- {plain(name)}: no {plain(', '.join(missing))}" for name, missing in audit.unjudged.items()]
    short = [f"- {plain(name)}: needs {count} steps" for name, count in audit.too_short.items()]
    return "\n".join(
        [
            plain(head(audit)),
            *(f"- {plain(remark)}" for remark in audit.log.remarks),
            "",
            table,
            "",
            f"{len(audit.judged)} rules could judge: {plain(', '.join(audit.judged)) or 'none'}.",
            *(["", "These could not:", *short, *missing_signals] if short or missing_signals else []),
        ]
    )


def show_rules(console: Console, rules: Mapping[str, RuleSettings]) -> None:
    """One row a rule, and how many there are of each level."""
    table = plain_table("rule", "level", "condition", "streak", "why", right=["streak"], no_wrap=["rule", "level"])
    for name, rule in rules.items():
        level = field(rule.level, LEVEL_STYLES.get(rule.level, ""))
        table.add_row(field(name), level, Text(conditions(rule)), str(rule.streak), field(rule.why))
    console.print(table)
    levels = Counter(str(rule.level) for rule in rules.values())
    counts = ", ".join(f"{levels[level]} {level}" for level in LEVEL_STYLES if levels[level])
    console.print(f"{len(rules)} rules, all compile: {counts}", highlight=False)


def conditions(rule: RuleSettings) -> str:
    """When a rule fires, what it then changes, and what else is special about it."""
    lines = [
        rule.when,
        f"unless {rule.unless}" if rule.unless else "",
        f"again after {rule.cooldown} steps" if rule.cooldown else "",
        *map(_action, rule.action),
        "optional" if rule.optional else "",
    ]
    return "\n".join(filter(None, lines))


def _action(action: ActionSettings) -> str:
    if action.times is not None:
        return f"-> {action.knob} times {action.times:g}"
    return f"-> {action.knob}" + (f" to {action.to:g}" if action.to is not None else "")
