"""Applies the rules to one step after the other, live or from a saved log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from components.config.judgement import REPAIR, RuleSettings
from components.health.rules import Condition, Reading, Rule, compile_rule, evaluator, longest
from components.health.windows import BASELINES, History, measure
from components.types import Level, StepRecord, Verdict

HUGE = 1e150
"""Values from here on are no measurements: their squares could overflow."""
PATIENCE = 20
"""Steps after its verdict for which an acting rule that still holds makes a step unhealthy."""
SINCE = "_since"
"""Ends the name of a signal that says of another one since which step it has been growing."""
GRAVE: tuple[Level, ...] = ("rollback", "stop")
"""Levels at which a run that nothing acted upon is not sound."""
LEVELS: tuple[Level, ...] = get_args(Level)
"""From harmless to grave."""


@dataclass
class Streak:
    """How long a rule has held: ``length`` steps in a row; ``clean`` is the last step before its evidence, ``fired``
    the step at which it last fired, and ``said`` whether that was of this streak."""

    length: int = 0
    clean: int = -1
    fired: int | None = None
    said: bool = False


class Monitor:
    """Watches a run.

    A rule breaches in a step when its condition holds and its exception does not, or when a signal of its condition is
    not finite in that step. A step in which something it reads does not exist counts neither way. When the breaches of
    consecutive steps reach the rule's streak the rule fires once. It can fire again after a step on which it did not
    hold, and, where it has a cool-down, whenever it still holds that many steps later; never within its cool-down.

    Raises:
        InputError: a rule is malformed; all rules are checked before the first step.
    """

    def __init__(self, rules: Mapping[str, RuleSettings]) -> None:
        self._rules = [compile_rule(name, settings) for name, settings in rules.items()]
        self._evaluator = evaluator()
        self._conditions: dict[str, Condition] = {
            reading.signal: reading.inner
            for rule in self._rules
            for condition in rule.conditions
            for reading in condition.nested
            if reading.inner
        }
        reach, opening = longest(self._rules)
        self._histories = {name: History(reach[name], opening.get(name, 0)) for name in sorted(reach)}
        self._step, self._seen, self._healthy = -1, 0, 0
        self._steps: deque[int] = deque(maxlen=max(reach.values(), default=1) + 1)  # the latest ones, with their gaps
        self._streaks = {rule.name: Streak() for rule in self._rules}
        self._known: dict[str, float | None] = {}  # what has been read in this step
        self._since: dict[str, int] = {}  # of signals that say so: the last step that is no part of their evidence

    def observe(self, record: StepRecord) -> list[Verdict]:
        """Take one step in and return what the rules newly say about it.

        Raises:
            ValueError: the record is not later than the one before.
        """
        if self._seen and record.step <= self._step:
            raise ValueError(f"step {record.step} observed after step {self._step}")
        self._step, self._seen = record.step, self._seen + 1
        self._steps.append(record.step)
        self._known.clear()
        since = ((name.removesuffix(SINCE), step) for name, step in record.signals.items() if name.endswith(SINCE))
        self._since = {name: int(step) for name, step in since}
        for name, history in self._histories.items():
            if name in record.signals:
                value = record.signals[name]
                history.add(self._seen - 1, record.step, value if abs(value) < HUGE else None)
        for text, condition in self._conditions.items():
            if (holds := self._holds(condition)) is not None:
                self._histories[text].add(self._seen - 1, record.step, float(holds))
        verdicts = [verdict for rule in self._rules if (verdict := self._judge(rule)) is not None]
        self._freeze_baselines()
        return verdicts

    def _judge(self, rule: Rule) -> Verdict | None:
        breached, streak = self._breached(rule), self._streaks[rule.name]
        if breached is None:
            return None
        if not breached:
            streak.length, streak.said = 0, False
            return None
        if not streak.length:
            streak.clean = self._clean(rule)
        streak.length += 1
        if streak.length < rule.settings.streak or not self._may_speak(rule, streak):
            return None
        streak.fired, streak.said = self._step, True
        evidence = {name: [value for _, value in self._histories[name].latest] for name in rule.signals}
        return Verdict(rule.name, rule.settings.level, self._step, self._reason(rule), evidence, streak.clean)

    def _may_speak(self, rule: Rule, streak: Streak) -> bool:
        cooldown = rule.settings.cooldown
        rested = streak.fired is None or self._step - streak.fired >= cooldown
        return rested and (not streak.said or cooldown > 0)

    def _broken(self, rule: Rule) -> list[str]:
        """The signals of a rule that are not finite in this step."""
        return [name for name in rule.signals if self._now(name) == (self._step, None)]

    def _reason(self, rule: Rule) -> str:
        """The reason as a sentence, with the condition and how long it held."""
        s = rule.settings
        why = f"{', '.join(broken)} is no finite number" if (broken := self._broken(rule)) else s.why
        unless = f", unless {s.unless}" if s.unless else ""
        return f"{why} [{s.when}{unless}{f', {s.streak} steps in a row' if s.streak > 1 else ''}]"

    def _breached(self, rule: Rule) -> bool | None:
        if self._broken(rule):
            return True
        holds = self._holds(rule.when)
        return holds and not (rule.unless is not None and self._holds(rule.unless)) if holds is not None else None

    def _holds(self, condition: Condition) -> bool | None:
        """None where something that it reads does not exist."""
        known: dict[str, float] = {}
        for name, reading in condition.readings.items():
            if name not in self._known:
                self._known[name] = self._value(reading)
            if (value := self._known[name]) is None:
                return None
            known[name] = value
        return condition.holds(self._evaluator, self._step, known)

    def _now(self, signal: str) -> tuple[int, float | None] | None:
        latest = self._histories[signal].latest
        return latest[-1] if latest else None

    def _value(self, reading: Reading) -> float | None:
        if reading.function is not None:
            steps = {"seen": self._seen, "healthy": self._healthy}
            history = self._histories[reading.signal]
            return measure(reading.function, history, count=reading.count, share=reading.share, **steps)
        now = self._now(reading.signal)
        return now[1] if now is not None and now[0] == self._step else None

    def _clean(self, rule: Rule) -> int:
        """The last step that is no part of the evidence of a breach that begins now."""
        clean = self._before(1)
        for reading in rule.when.nested:
            latest = self._histories[reading.signal].latest
            clean = min(clean, self._since.get(reading.signal, clean))
            if reading.count is not None and reading.function not in BASELINES:
                clean = min(clean, self._before(reading.count))
            elif reading.function not in BASELINES and latest:
                # What a signal that is measured now and then shows may be as old as the measurement before.
                clean = min(clean, latest[-2][0] if len(latest) > 1 else -1)
        return clean

    def _before(self, count: int) -> int:
        """The last step before the latest ``count``; -1 where there is none. After a roll-back numbers have a gap."""
        return self._steps[-1 - count] if len(self._steps) > count else -1

    def _freeze_baselines(self) -> None:
        """Baselines are made of the first healthy steps: those on which no acting rule holds that has just fired.

        One that has been holding for long does not count: what is so from the start on is how this run is, and without
        a baseline the other rules would never be able to judge it.
        """
        if any(self._is_grave(rule) for rule in self._rules):
            return
        for history in self._histories.values():
            if history.latest and history.latest[-1][0] == self._step:
                history.freeze(self._healthy)
        self._healthy += 1

    def _is_grave(self, rule: Rule) -> bool:
        streak = self._streaks[rule.name]
        if rule.settings.level == "warn" or not streak.length:
            return False
        return streak.fired is None or self._step - streak.fired < PATIENCE

    def metrics(self) -> dict[str, float]:
        """Steps for which each rule has held, up to now; 0 is healthy."""
        return {name: float(streak.length) for name, streak in self._streaks.items()}

    @property
    def reach(self) -> int:
        """The longest window, in steps, that a rule looks back over."""
        return max((history.reach for history in self._histories.values()), default=1)

    @property
    def healthy(self) -> bool:
        """Whether no rule that acts holds at present, not even for less than its streak."""
        return not any(self._streaks[rule.name].length and rule.settings.level != "warn" for rule in self._rules)

    def forget(self, signals: Iterable[str]) -> None:
        """Clear the histories of these signals, and of conditions on them: they are measured otherwise from now on."""
        changed = set(signals)
        changed |= {text for text, condition in self._conditions.items() if condition.signals & changed}
        for name in changed & set(self._histories):
            old = self._histories[name]
            self._histories[name] = History(old.reach, old.opening)

    def go_back(self, state: Mapping[str, Any]) -> None:
        """Take over an earlier state, but keep when each rule last fired: a cool-down outlasts a roll-back."""
        fired = {name: streak.fired for name, streak in self._streaks.items()}
        self.load_state_dict(state)
        for name, streak in self._streaks.items():
            streak.fired = fired[name]

    def latest(self, rule: str) -> dict[str, float | None]:
        """The latest value of every signal of a rule."""
        (found,) = [one for one in self._rules if one.name == rule]
        return {name: now[1] for name in found.signals if (now := self._now(name)) is not None}

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs, as JSON values."""
        return {
            "step": self._step,
            "steps": list(self._steps),
            "seen": self._seen,
            "healthy": self._healthy,
            "histories": {name: history.state_dict() for name, history in self._histories.items()},
            "streaks": {name: dict(vars(streak)) for name, streak in self._streaks.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`.

        Raises:
            ValueError: a field, a signal or a rule is missing or unknown: the state is of other rules.
        """
        own = self.state_dict()
        for found, expected in ((state, own), *((state.get(key, {}), own[key]) for key in ("histories", "streaks"))):
            if set(found) != set(expected):
                raise ValueError(f"monitor state has {sorted(found)}, expected {sorted(expected)}")
        self._step, self._seen, self._healthy = (int(state[key]) for key in ("step", "seen", "healthy"))
        self._steps = deque(map(int, state["steps"]), maxlen=self._steps.maxlen)
        for name, history in self._histories.items():
            history.load_state_dict(state["histories"][name])
        self._streaks = {name: Streak(**state["streaks"][name]) for name in self._streaks}


def replay(rules: Mapping[str, RuleSettings], records: Iterable[StepRecord]) -> list[Verdict]:
    """Every verdict that a live monitor with these rules would have given on these records."""
    return _replayed(rules, records)[1]


def standing(rules: Mapping[str, RuleSettings], records: Iterable[StepRecord]) -> list[str]:
    """The rules that request a roll-back, a stop or a repair and still hold at the last step of a run, in order."""
    monitor, _ = _replayed(rules, records)
    held = monitor.metrics().items()
    return [name for name, length in held if length >= rules[name].streak and _is_unresolved(rules[name])]


def _is_unresolved(rule: RuleSettings) -> bool:
    """Whether a run is broken while the rule holds: what a knob is turned for may be so to its end."""
    return rule.level in GRAVE or any(action.knob == REPAIR for action in rule.action)


def _replayed(rules: Mapping[str, RuleSettings], records: Iterable[StepRecord]) -> tuple[Monitor, list[Verdict]]:
    """A monitor that has watched a run, and what it said. Where the run was rolled back, it went back with it."""
    monitor, verdicts, observed = Monitor(rules), list[Verdict](), list(records)
    backs = {back for one in observed if (back := one.notes.get("rolled_back_to")) is not None}
    targets, saved = sorted(backs, reverse=True), dict[int, Mapping[str, Any]]()  # step -> the state before it
    for record in observed:
        while targets and targets[-1] <= record.step:
            saved[targets.pop()] = monitor.state_dict()
        verdicts += monitor.observe(record)
        if (back := record.notes.get("rolled_back_to")) in saved:
            monitor.go_back(saved[back])
        monitor.forget(record.notes.get("measured_anew", ()))
    return monitor, verdicts


def unjudged(rules: Mapping[str, RuleSettings], records: Iterable[StepRecord]) -> dict[str, list[str]]:
    """Rules that these records cannot judge, with the signals that never occur in them."""
    found = {name for record in records for name in record.signals}
    missing = {name: sorted(set(compile_rule(name, rule).signals) - found) for name, rule in rules.items()}
    return {name: signals for name, signals in missing.items() if signals}


def worst(verdicts: Iterable[Verdict]) -> Level:
    """The gravest level among the verdicts; ``pass`` when there is none."""
    return max((verdict.level for verdict in verdicts), key=LEVELS.index, default="pass")
