"""Which response a verdict gets: repair what is broken; where the policy is to blame, turn a knob, go back, or stop.

Every step of the ladder has a budget, so that it ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from components.config import Settings
from components.config.judgement import QUARANTINE, REPAIR, Part
from components.health.diagnosis import Diagnosis
from components.health.monitor import Monitor
from components.health.responses.checkpoints import Saved, healthiest
from components.health.responses.knobs import KNOBS
from components.health.responses.pending import PendingResponses
from components.health.responses.repairs import Repairs, Situation
from components.health.responses.turning import Turning
from components.health.responses.under_watch import MEASURES, UNDER_WATCH, FaultAttribution, UnderWatch
from components.types import Change, Level, Outcome, Response, Verdict

NOTHING_KNOWN = Situation()
NUMBERS = {
    "number": "_number", "attempt": "attempt", "lost": "lost", "interventions": "_interventions", "blamed": "blamed",
}  # fmt: skip
PARTS = {"repairs": "repairs", "under_watch": "under_watch", "blame": "attribution", "awaiting": "pending"}
"""Keys in the state of a `Responder` and its attributes: numbers, and parts with a state of their own."""


@dataclass(frozen=True)
class Plan:
    """What is to be done after a step: entries for the ledger, and what the run has to carry out."""

    responses: tuple[Response, ...] = ()
    back_to: Saved | None = None
    stopped_by: str | None = None

    @property
    def acts(self) -> bool:
        """Whether anything is done but noting and going on under watch."""
        return any(one.level != "warn" and one.changes != (UNDER_WATCH,) for one in self.responses)


@dataclass
class Responder:
    """Decides, keeps the budgets, and remembers what it changed. Its state does not go back with a roll-back.

    ``attempt`` counts roll-backs: it changes the seeds of everything that is sampled afterwards. ``blamed`` counts
    those for which the policy was to blame.
    """

    started: Settings
    quarantined: set[str] = field(default_factory=set)
    attempt: int = 0
    lost: int = 0  # steps that roll-backs have undone
    _number: int = 0
    _interventions: int = 0
    _tried: dict[str, int] = field(default_factory=dict)  # by rule: interventions so far
    _turning: Turning = field(init=False)
    blamed: int = 0
    repairs: Repairs = field(default_factory=Repairs)
    under_watch: UnderWatch = field(default_factory=UnderWatch)

    def __post_init__(self) -> None:
        self._turning = Turning(self.started)
        self._situation = NOTHING_KNOWN
        self._diagnosis: Diagnosis | None = None
        self._limits = self.started.health.responses
        self.attribution = FaultAttribution(self.started.health.rules)
        self.pending = PendingResponses(self._limits.judge_after)

    @property
    def settings(self) -> Settings:
        """The present ones: they differ from the configured ones where a response changed a knob."""
        return self._turning.settings

    def respond(
        self,
        verdicts: Sequence[Verdict],
        monitor: Monitor,
        saved: Sequence[Saved],
        batch: Sequence[str],
        prompts: int,
        situation: Situation = NOTHING_KNOWN,
        diagnosis: Diagnosis | None = None,
    ) -> Plan:
        """What to do about the verdicts of one step. The most urgent about which something can be done is acted upon,
        the others are noted.

        Args:
            saved: the checkpoints that there are.
            batch: ids of the prompts that poisoned this step's update; empty where none did.
            prompts: how many training prompts there are.
            situation: what a repair depends on.
            diagnosis: which part is to blame for what rules say of the policy, where that was found out.
        """
        self._situation, self._diagnosis = situation, diagnosis
        self._turning.in_force = situation.in_force
        self.under_watch.look(situation.step, monitor.metrics(), learned=situation.learned)
        acted = self._harmed(saved)
        if not verdicts and not acted.acts:
            return acted
        self.pending.note_verdicts(verdicts)
        responses = acted.responses
        for verdict in sorted(verdicts, key=self.attribution.urgency, reverse=True):
            plan = self._note(verdict) if acted.acts else self._act(verdict, saved, batch, prompts)
            acted = plan if plan.acts else acted
            responses += plan.responses
        for response in responses:
            undone = self._undone(response.step, acted.back_to) if response.level == "rollback" else 0
            self.pending.expect(response, monitor, undone)
        return replace(acted, responses=responses)

    def _part(self, verdict: Verdict) -> Part | None:
        """What is to blame: the part that the rule points at, or for a rule on the policy the one that was found."""
        part = self.started.health.rules[verdict.rule].part
        return part if self._diagnosis is None or part not in (None, "policy") else self._diagnosis.part

    def _act(self, verdict: Verdict, saved: Sequence[Saved], batch: Sequence[str], prompts: int) -> Plan:
        if not self._limits.enabled:
            return self._stop(verdict, None) if verdict.level == "stop" else self._note(verdict)
        back = healthiest(saved, self.attribution.clean(verdict))
        if verdict.level == "warn":
            return self._note(verdict)
        if verdict.level == "intervene" and (plan := self._intervene(verdict, batch, prompts)) is not None:
            return plan
        if verdict.level == "intervene" and not self.started.health.rules[verdict.rule].escalate:
            return self._note(verdict)
        if verdict.level == "stop" or back is None:
            return self._go_on(verdict) or self._stop(verdict, back)
        return self._go_back(verdict, back)

    def _go_back(self, verdict: Verdict, back: Saved) -> Plan:
        """A return to a healthy checkpoint: with a knob turned where the policy is to blame, else with a repair.

        What measures the policy cannot be repaired by going back: without a repair the run stops. A learner has no
        repair; it goes back as often as the budget allows, with the knob of a rule that points at it and has one.
        """
        part, broken = self._part(verdict), self.attribution.broken_measure(verdict)
        if broken and self._diagnosis is None:
            return self._stop(verdict, back, broken)
        if self._is_harm(verdict, part):
            return self._stop(verdict, back)
        if part in (None, "policy"):
            return self._roll_back(verdict, back) if self.blamed < self._limits.rollbacks else self._stop(verdict, back)
        if self.attempt - self.blamed >= self._limits.returns:
            return self._go_on(verdict) or self._stop(verdict, back)
        change = self._repair(part)
        if change is None and self._diagnosis is None:  # the rule itself points at the part, and may know a knob for it
            change, _ = self._turning.next(verdict.rule)
        if change is None and part in MEASURES:
            return self._go_on(verdict) or self._stop(verdict, back)
        return self._roll_back(verdict, back, () if change is None else (change,))

    def _intervene(self, verdict: Verdict, batch: Sequence[str], prompts: int) -> Plan | None:
        """None where the budget is used up, or nothing is left to change."""
        knobs = {action.knob for action in self.started.health.rules[verdict.rule].action}
        if QUARANTINE in knobs and (plan := self._quarantine(verdict, batch, prompts)) is not None:
            return plan
        if REPAIR in knobs and (change := self._repair(self._part(verdict))):
            return Plan((self._entry(verdict, "intervene", changes=(change,)),))
        tries = self._tried.get(verdict.rule, 0)
        if tries >= self._limits.per_rule or self._interventions >= self._limits.interventions:
            return None
        change, tried = self._turning.next(verdict.rule)
        if change is None:
            return None
        self._tried[verdict.rule] = tries + 1
        self._interventions += 1
        entry = self._entry(verdict, "intervene", changes=(change,), did=tried)
        self._turning.note(entry, change)
        return Plan((entry,))

    def _repair(self, part: Part | None) -> Change | None:
        """The next repair of a part, noted; None where nothing is left to try."""
        change = self.repairs.of(part, self.settings, self._situation)
        if change is not None and change.knob in KNOBS:
            self._turning.set(change.knob, change.after)
        return change

    def undo(self, outcomes: Sequence[Outcome], step: int) -> tuple[Response, ...]:
        """Take knobs back that were turned without going back, and did not help; a repair is never taken back."""
        return tuple(self._taken_back(*due, step) for due in self._turning.due(outcomes))

    def _taken_back(self, number: int, rule: str, change: Change, step: int) -> Response:
        self._turning.set(change.knob, change.before)
        self._number += 1
        why = f"response {number} did not help: its rule still holds and held-out accuracy has not risen"
        back, did = Change(change.knob, change.after, change.before), f"response {number} taken back"
        return Response(
            self._number, step, rule, "intervene", "intervene", why, changes=(back,), did=did, undoes=number
        )

    def _quarantine(self, verdict: Verdict, batch: Sequence[str], prompts: int) -> Plan | None:
        room = int(self._limits.quarantine * prompts) - len(self.quarantined)
        new = sorted(set(batch) - self.quarantined)[: max(0, room)]
        if not new:
            return None
        self.quarantined |= set(new)
        did = f"{len(new)} prompts into quarantine"
        return Plan((self._entry(verdict, "intervene", quarantined=tuple(new), did=did),))

    def _roll_back(self, verdict: Verdict, back: Saved, repaired: tuple[Change, ...] | None = None) -> Plan:
        """To a checkpoint; with the rule's next knob turned, unless a part is to blame, which has been ``repaired``."""
        changes, tried = (() if repaired is None else repaired), ""
        if repaired is None:
            change, tried = self._turning.next(verdict.rule)
            changes = () if change is None else (change,)
            self.blamed += 1
        self.attempt += 1
        self.attribution.targets[verdict.rule] = back.step
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

    def _harmed(self, saved: Sequence[Saved]) -> Plan:
        """Stop where a fault under watch does harm, with a checkpoint from before the watch; else nothing."""
        step, parts = self._situation.step, self.under_watch.parts(self._situation.step)
        harm = self.under_watch.harm(self._situation.fall, sound=self._situation.sound) if parts else ""
        if not harm:
            return Plan()
        verdict = replace(self.under_watch.verdicts[parts[0]], step=step)
        self._diagnosis = Diagnosis(parts[0], (harm,))
        return self._stop(verdict, healthiest(saved, self.attribution.clean(verdict)))

    def _is_harm(self, verdict: Verdict, part: Part | None) -> bool:
        """Whether a rule on the policy shows what a part that is under watch has done."""
        on_policy = self.started.health.rules[verdict.rule].part == "policy"
        return on_policy and part in self.under_watch.parts(verdict.step)

    def _go_on(self, verdict: Verdict) -> Plan | None:
        """Go on under watch, which the ledger has once a part; None where the run has to stop."""
        part = self.started.health.rules[verdict.rule].part  # a rule on the policy shows harm, whatever did it
        may = self._limits.go_on and self._situation.trains and self._situation.sound
        if part is None or not (may and self.under_watch.may(part, verdict, self._situation.fall)):
            return None
        if part in self.under_watch.parts(verdict.step):
            return self._note(verdict)
        self.under_watch.begin(part, verdict)
        return Plan((self._entry(verdict, "intervene", changes=(UNDER_WATCH,)),))

    def _note(self, verdict: Verdict) -> Plan:
        self.attribution.noted(verdict)
        return Plan((self._entry(verdict, "warn"),))

    def _entry(self, verdict: Verdict, level: Level, **what: Any) -> Response:
        self._number += 1
        found = () if self._diagnosis is None or level == "warn" else self._diagnosis.evidence
        said = (verdict.step, verdict.rule, verdict.level, level, verdict.reason, verdict.evidence)
        return Response(self._number, *said, part=self._part(verdict) or "", found=found, **what)

    def _undone(self, step: int, back: Saved | None) -> int:
        """Steps that a roll-back after ``step`` undoes, without those that did not count or were undone before."""
        lost = 0 if back is None else step + 1 - self._situation.repeated - self.lost - back.progress
        self.lost += lost
        return lost

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs, as JSON values."""
        return {
            **{key: getattr(self, name) for key, name in NUMBERS.items()},
            **{key: getattr(self, name).state_dict() for key, name in PARTS.items()},
            **self._turning.state_dict(),
            "asked": dict(self._tried),
            "quarantined": sorted(self.quarantined),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`.

        Raises:
            ValueError: another set of fields.
        """
        if set(state) != set(self.state_dict()):
            raise ValueError(f"state of the responder has {sorted(state)}")
        for key, name in NUMBERS.items():
            setattr(self, name, int(state[key]))
        for key, name in PARTS.items():
            getattr(self, name).load_state_dict(state[key])
        self._turning.load_state_dict(state)
        self._tried, self.quarantined = dict(state["asked"]), set(state["quarantined"])

    def settings_of(self, state: Mapping[str, Any]) -> Settings:
        """The settings under which a saved state was made."""
        then = Turning(self.started)
        then.load_state_dict(state)
        return then.settings
