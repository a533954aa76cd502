"""Responses whose run has not recovered yet, and when it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.health.falls import ALL, Counts, below, best
from components.health.monitor import Monitor
from components.health.sequential import Count
from components.types import Outcome, Response, Verdict


@dataclass
class Pending:
    """A response whose run has not recovered yet. ``again``: its rule has fired again. ``lasting``: it was due before,
    and had not recovered. ``right`` is the share of right held-out answers when it was made."""

    number: int
    rule: str
    due: int
    signals: Mapping[str, float | None]
    cost: int = 0
    again: bool = False
    lasting: bool = False
    right: float | None = None


@dataclass
class PendingResponses:
    """Judges responses. ``held_out`` are the held-out accuracies of the run at their best, by stream."""

    after: int  # steps from a response to its first judgement
    pending: list[Pending] = field(default_factory=list)
    held_out: dict[str, Count] = field(default_factory=dict)
    present: Count | None = None  # of all held-out prompts, at the latest measurement

    def forget(self) -> None:
        """Held-out answers are judged otherwise from now on."""
        self.held_out, self.present = {}, None

    def note_verdicts(self, verdicts: Sequence[Verdict]) -> None:
        """Rules that fire again have not been helped."""
        for one in self.pending:
            one.again |= any(verdict.rule == one.rule for verdict in verdicts)

    def expect(self, response: Response, monitor: Monitor, lost: int) -> None:
        """Judge a response later; nothing comes after a stop."""
        if response.level != "stop":
            due = response.step + self.after
            now = self.present.share if self.present is not None else None
            signals = monitor.latest(response.rule)
            self.pending.append(Pending(response.number, response.rule, due, signals, lost, right=now))

    def outcomes(
        self, step: int, monitor: Monitor, held_out: Counts, *, over: bool = False, blind: bool = False
    ) -> list[Outcome]:
        """The outcomes of responses: from the step on at which they are due, at every measurement of held-out accuracy
        until the run has recovered; of all that are left when the run is over.

        Args:
            held_out: right answers by stream, where the dev split was measured in this step.
            blind: there is no monitor to evaluate the rules.
        """
        found = []
        for one in [one for one in self.pending if over or (step >= one.due and held_out)]:
            outcome = self._judged(one, step, monitor, held_out, blind)
            if not (one.lasting and outcome.recovered is not True):  # that it has not recovered is known already
                found.append(outcome)
            one.lasting = True
            if outcome.recovered or one.again or over:
                self.pending.remove(one)
        self.held_out = best(self.held_out, held_out)
        self.present = held_out.get(ALL, self.present)
        return found

    def _judged(self, one: Pending, step: int, monitor: Monitor, held_out: Counts, blind: bool) -> Outcome:
        """Recovered: the rule is silent, and held-out accuracy is what it was at its best, in every family."""
        now = monitor.latest(one.rule)
        signals = {name: [then, now.get(name)] for name, then in one.signals.items()}
        lost = below(self.held_out, held_out)
        holds = one.again or monitor.metrics()[one.rule] > 0
        well: bool | None = not holds and not lost
        if blind or (well and (step < one.due or not held_out)):
            well = None  # too early to say that it will last, or not measured
        rose = one.right is not None and ALL in held_out and held_out[ALL].share > one.right
        useless = None if blind or not held_out or step < one.due else holds and not rose
        return Outcome(one.number, step, well, signals, one.cost, lost, useless)

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs, as JSON values."""
        best_so_far = {name: list(count) for name, count in self.held_out.items()}
        present = None if self.present is None else list(self.present)
        return {"pending": [dict(vars(one)) for one in self.pending], "held_out": best_so_far, "present": present}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self.pending = [Pending(**one) for one in state["pending"]]
        self.held_out = {name: Count(*count) for name, count in state["held_out"].items()}
        self.present = None if state["present"] is None else Count(*state["present"])
