"""Which response a verdict gets. Every step of the ladder has a budget, so that it ends: intervene, roll back, stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from components.config import Settings
from components.health.falls import Counts, below, best
from components.health.monitor import LEVELS, PATIENCE, Monitor
from components.health.responses.checkpoints import Saved, healthiest
from components.health.responses.knobs import KNOBS, QUARANTINE, REDRAW, turn, with_knob
from components.health.sequential import Count
from components.types import Change, Level, Outcome, Response, Verdict

MEASURES = ("verifier", "sampler")
"""Parts without which nothing is known of the policy."""


@dataclass(frozen=True)
class Plan:
    """What is to be done after a step: entries for the ledger, and what the run has to carry out."""

    responses: tuple[Response, ...] = ()
    back_to: Saved | None = None
    stopped_by: str | None = None


@dataclass
class Pending:
    """A response whose run has not recovered yet. ``again``: its rule has spoken again. ``lasting``: it was due before,
    and had not recovered."""

    number: int
    rule: str
    due: int
    signals: Mapping[str, float | None]
    cost: int = 0
    again: bool = False
    lasting: bool = False


@dataclass
class Responder:
    """Decides, keeps the budgets, and remembers what it changed. Its state does not go back with a roll-back.

    ``attempt`` counts roll-backs: it changes the seeds of everything that is sampled afterwards.
    """

    started: Settings
    settings: Settings = field(init=False)
    quarantined: set[str] = field(default_factory=set)
    attempt: int = 0
    lost: int = 0  # steps that roll-backs have undone
    _number: int = 0
    _interventions: int = 0
    _asked: dict[str, int] = field(default_factory=dict)  # by rule: interventions so far
    _actions: dict[str, int] = field(default_factory=dict)  # by rule: actions tried so far
    _changes: dict[str, Any] = field(default_factory=dict)
    _pending: list[Pending] = field(default_factory=list)
    redrawn: bool = False
    held_out: dict[str, Count] = field(default_factory=dict)  # accuracies at their best
    _targets: dict[str, int] = field(default_factory=dict)  # by rule: step of the checkpoint that it went back to
    _unrepaired: dict[str, int] = field(
        default_factory=dict
    )  # rules on a part that measures: step of the latest verdict

    def __post_init__(self) -> None:
        self.settings = self.started
        self._limits = self.started.health.responses

    def respond(
        self, verdicts: Sequence[Verdict], monitor: Monitor, saved: Sequence[Saved], batch: Sequence[str], prompts: int
    ) -> Plan:
        """What to do about the verdicts of one step. The most urgent about which something can be done is acted upon,
        the others are noted.

        Args:
            saved: the checkpoints that there are.
            batch: ids of the prompts that poisoned this step's update; empty where none did.
            prompts: how many training prompts there are.
        """
        if not verdicts:
            return Plan()
        for pending in self._pending:
            pending.again |= any(verdict.rule == pending.rule for verdict in verdicts)
        acted, responses = Plan(), tuple[Response, ...]()
        for verdict in sorted(verdicts, key=self._urgency, reverse=True):
            plan = self._note(verdict) if _acts(acted) else self._act(verdict, saved, batch, prompts)
            acted = plan if _acts(plan) else acted
            responses += plan.responses
        for response in responses:
            undone = self._undone(response.step, acted.back_to) if response.level == "rollback" else 0
            self._expect(response, monitor, undone)
        return replace(acted, responses=responses)

    def _urgency(self, verdict: Verdict) -> tuple[int, int]:
        """The gravest verdict comes first; but what measures the policy is repaired before the policy is taken back."""
        part = self.started.health.rules[verdict.rule].part
        repair = 1 if part in MEASURES and verdict.level == "intervene" else 0
        urgent = {"stop": 3, "rollback": 2 if part != "policy" else 0}.get(verdict.level, repair)
        return urgent, LEVELS.index(verdict.level)

    def _act(self, verdict: Verdict, saved: Sequence[Saved], batch: Sequence[str], prompts: int) -> Plan:
        if not self._limits.enabled:
            return self._stop(verdict, None) if verdict.level == "stop" else self._note(verdict)
        back = healthiest(saved, self._clean(verdict))
        if verdict.level == "warn":
            return self._note(verdict)
        if verdict.level == "intervene" and (plan := self._intervene(verdict, batch, prompts)) is not None:
            return plan
        if verdict.level == "intervene" and not self.started.health.rules[verdict.rule].escalate:
            return self._note(verdict)
        broken = self._broken_measure(verdict)
        if verdict.level != "stop" and self.attempt < self._limits.rollbacks and back is not None and not broken:
            return self._roll_back(verdict, back)
        return self._stop(verdict, back, broken)

    def _clean(self, verdict: Verdict) -> int:
        """The step that a checkpoint has to be made by. Where the policy is not to blame, one that a rule went back to
        before is as good as it was then, though what is broken shows in its first step, too."""
        if self.started.health.rules[verdict.rule].part in (None, "policy"):
            return verdict.clean
        return max(verdict.clean, self._targets.get(verdict.rule, -1))

    def _broken_measure(self, verdict: Verdict) -> str:
        """The rule that shows the policy to be measured by a broken part; empty where none does, and of verdicts on
        anything but the policy."""
        if self.started.health.rules[verdict.rule].part != "policy":
            return ""
        recent = (rule for rule, step in self._unrepaired.items() if verdict.step - step < PATIENCE)
        return next(recent, "")

    def _intervene(self, verdict: Verdict, batch: Sequence[str], prompts: int) -> Plan | None:
        """None where the budget is used up, or nothing is left to change."""
        rule = self.started.health.rules[verdict.rule]
        if any(action.knob == QUARANTINE for action in rule.action):
            plan = self._quarantine(verdict, batch, prompts)
            if plan is not None:
                return plan
        if not self.redrawn and any(action.knob == REDRAW for action in rule.action):
            self.redrawn = True
            redrawn = Change(REDRAW, "the schedule", "the training split, uniformly")
            return Plan((self._entry(verdict, "intervene", changes=(redrawn,)),))
        asked = self._asked.get(verdict.rule, 0)
        if asked >= self._limits.per_rule or self._interventions >= self._limits.interventions:
            return None
        change, tried = self._turn(verdict.rule)
        if change is None:
            return None
        self._asked[verdict.rule] = asked + 1
        self._interventions += 1
        return Plan((self._entry(verdict, "intervene", changes=(change,), did=tried),))

    def _quarantine(self, verdict: Verdict, batch: Sequence[str], prompts: int) -> Plan | None:
        room = int(self._limits.quarantine * prompts) - len(self.quarantined)
        new = sorted(set(batch) - self.quarantined)[: max(0, room)]
        if not new:
            return None
        self.quarantined |= set(new)
        did = f"{len(new)} prompts into quarantine"
        return Plan((self._entry(verdict, "intervene", quarantined=tuple(new), did=did),))

    def _roll_back(self, verdict: Verdict, back: Saved) -> Plan:
        change, tried = self._turn(verdict.rule)
        self.attempt += 1
        self._targets[verdict.rule] = back.step
        changes = () if change is None else (change,)
        did = "; ".join([f"back to step {back.progress}, with other seeds", *([tried] if tried else [])])
        entry = self._entry(
            verdict, "rollback", changes=changes, back_to=back.step, back_progress=back.progress, did=did
        )
        return Plan((entry,), back_to=back)

    def _stop(self, verdict: Verdict, back: Saved | None, broken: str = "") -> Plan:
        kept = "stopped" if back is None else f"stopped; the policy of step {back.progress} is kept"
        if broken:
            kept += f"; what the policy is measured by is broken ({broken}), so it is not blamed"
        place = {} if back is None else {"back_to": back.step, "back_progress": back.progress}
        entry = self._entry(verdict, "stop", did=kept, **place)
        return Plan((entry,), back_to=back, stopped_by=verdict.rule)

    def _note(self, verdict: Verdict) -> Plan:
        if verdict.level != "warn" and self.started.health.rules[verdict.rule].part in MEASURES:
            self._unrepaired[verdict.rule] = verdict.step
        return Plan((self._entry(verdict, "warn"),))

    def _turn(self, rule: str) -> tuple[Change | None, str]:
        """Change the next knob of a rule that can be changed; the last one is turned again. Says what could not."""
        actions = [action for action in self.started.health.rules[rule].action if action.knob in KNOBS]
        refused = []
        first = min(self._actions.get(rule, 0), max(0, len(actions) - 1))
        for place in range(first, len(actions)):
            self._actions[rule] = place + 1
            found = turn(actions[place], self.settings, self.started)
            if isinstance(found, str):
                refused.append(found)
                continue
            self.settings, change = found
            self._changes[change.knob] = change.after
            return change, "; ".join(refused)
        return None, "; ".join(refused)

    def _entry(self, verdict: Verdict, level: Level, **what: Any) -> Response:
        self._number += 1
        return Response(
            self._number, verdict.step, verdict.rule, verdict.level, level, verdict.reason, verdict.evidence, **what
        )

    def _undone(self, step: int, back: Saved | None) -> int:
        """Steps that a roll-back after ``step`` undoes, without those that earlier ones have undone."""
        lost = 0 if back is None else step + 1 - self.lost - back.progress
        self.lost += lost
        return lost

    def _expect(self, response: Response, monitor: Monitor, lost: int) -> None:
        if response.level == "stop":
            return
        due = response.step + self._limits.judge_after
        self._pending.append(Pending(response.number, response.rule, due, monitor.latest(response.rule), lost))

    def outcomes(
        self, step: int, monitor: Monitor, held_out: Counts, *, over: bool = False, blind: bool = False
    ) -> list[Outcome]:
        """The outcomes of responses: from the step on at which they are due, at every measurement of held-out accuracy
        until the run has recovered; of all that are left when the run is over.

        Args:
            held_out: right answers by stream, where the dev split was measured in this step.
            blind: there is no monitor that could say whether a rule holds.
        """
        found = []
        for one in [one for one in self._pending if over or (step >= one.due and held_out)]:
            outcome = self._judged(one, step, monitor, held_out, blind)
            if not (one.lasting and outcome.recovered is not True):  # that it has not recovered is known already
                found.append(outcome)
            one.lasting = True
            if outcome.recovered or one.again or over:
                self._pending.remove(one)
        self.held_out = best(self.held_out, held_out)
        return found

    def _judged(self, one: Pending, step: int, monitor: Monitor, held_out: Counts, blind: bool) -> Outcome:
        """Recovered: the rule is silent, and held-out accuracy is what it was at its best, in every family."""
        now = monitor.latest(one.rule)
        signals = {name: [then, now.get(name)] for name, then in one.signals.items()}
        lost = below(self.held_out, held_out)
        well: bool | None = not one.again and monitor.metrics()[one.rule] == 0 and not lost
        if blind or (well and (step < one.due or not held_out)):
            well = None  # too early to say that it will last, or not measured
        return Outcome(one.number, step, well, signals, one.cost, lost)

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs, as JSON values."""
        return {
            "number": self._number,
            "attempt": self.attempt,
            "lost": self.lost,
            "interventions": self._interventions,
            "asked": dict(self._asked),
            "actions": dict(self._actions),
            "changes": dict(self._changes),
            "quarantined": sorted(self.quarantined),
            "pending": [dict(vars(one)) for one in self._pending],
            "redrawn": self.redrawn,
            "targets": dict(self._targets),
            "unrepaired": dict(self._unrepaired),
            "best": {name: list(count) for name, count in self.held_out.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`.

        Raises:
            ValueError: another set of fields.
        """
        if set(state) != set(self.state_dict()):
            raise ValueError(f"state of the responder has {sorted(state)}")
        self._number, self.attempt, self.lost = (int(state[key]) for key in ("number", "attempt", "lost"))
        self._interventions = int(state["interventions"])
        self._asked, self._actions = dict(state["asked"]), dict(state["actions"])
        self._changes, self.quarantined = dict(state["changes"]), set(state["quarantined"])
        self._pending = [Pending(**one) for one in state["pending"]]
        self.held_out = {name: Count(*count) for name, count in state["best"].items()}
        self.redrawn, self._targets = bool(state["redrawn"]), dict(state["targets"])
        self._unrepaired = dict(state["unrepaired"])
        self.settings = self.settings_of(state)

    def settings_of(self, state: Mapping[str, Any]) -> Settings:
        """The settings under which a saved state was made."""
        settings = self.started
        for knob, value in state["changes"].items():
            settings = with_knob(settings, knob, value)
        return settings


def _acts(plan: Plan) -> bool:
    """Whether anything is done but noting."""
    return any(response.level != "warn" for response in plan.responses)
