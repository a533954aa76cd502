"""Which response a verdict gets. Every step of the ladder has a budget, so that it ends: intervene, roll back, stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from components.config import Settings
from components.health.monitor import Monitor
from components.health.responses.awaiting import Awaiting
from components.health.responses.blame import Blame
from components.health.responses.checkpoints import Saved, healthiest
from components.health.responses.knobs import KNOBS, QUARANTINE, REDRAW, turn, with_knob
from components.types import Change, Level, Response, Verdict


@dataclass(frozen=True)
class Plan:
    """What is to be done after a step: entries for the ledger, and what the run has to carry out."""

    responses: tuple[Response, ...] = ()
    back_to: Saved | None = None
    stopped_by: str | None = None


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
    redrawn: bool = False

    def __post_init__(self) -> None:
        self.settings = self.started
        self._limits = self.started.health.responses
        self.blame, self.awaiting = Blame(self.started.health.rules), Awaiting(self._limits.judge_after)

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
        self.awaiting.heard(verdicts)
        acted, responses = Plan(), tuple[Response, ...]()
        for verdict in sorted(verdicts, key=self.blame.urgency, reverse=True):
            plan = self._note(verdict) if _acts(acted) else self._act(verdict, saved, batch, prompts)
            acted = plan if _acts(plan) else acted
            responses += plan.responses
        for response in responses:
            undone = self._undone(response.step, acted.back_to) if response.level == "rollback" else 0
            self.awaiting.expect(response, monitor, undone)
        return replace(acted, responses=responses)

    def _act(self, verdict: Verdict, saved: Sequence[Saved], batch: Sequence[str], prompts: int) -> Plan:
        if not self._limits.enabled:
            return self._stop(verdict, None) if verdict.level == "stop" else self._note(verdict)
        back = healthiest(saved, self.blame.clean(verdict))
        if verdict.level == "warn":
            return self._note(verdict)
        if verdict.level == "intervene" and (plan := self._intervene(verdict, batch, prompts)) is not None:
            return plan
        if verdict.level == "intervene" and not self.started.health.rules[verdict.rule].escalate:
            return self._note(verdict)
        broken = self.blame.broken_measure(verdict)
        if verdict.level != "stop" and self.attempt < self._limits.rollbacks and back is not None and not broken:
            return self._roll_back(verdict, back)
        return self._stop(verdict, back, broken)

    def _intervene(self, verdict: Verdict, batch: Sequence[str], prompts: int) -> Plan | None:
        """None where the budget is used up, or nothing is left to change."""
        rule = self.started.health.rules[verdict.rule]
        if any(action.knob == QUARANTINE for action in rule.action):
            plan = self._quarantine(verdict, batch, prompts)
            if plan is not None:
                return plan
        if not self.redrawn and any(action.knob == REDRAW for action in rule.action):
            self.redrawn = True
            redrawn = Change(REDRAW, "schedule", "training split")
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
        self.blame.targets[verdict.rule] = back.step
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
        self.blame.noted(verdict)
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
            "redrawn": self.redrawn,
            "blame": self.blame.state_dict(),
            "awaiting": self.awaiting.state_dict(),
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
        self.redrawn = bool(state["redrawn"])
        self.blame.load_state_dict(state["blame"])
        self.awaiting.load_state_dict(state["awaiting"])
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
