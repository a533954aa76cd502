"""The parts of a training run that have state, and how all of them are saved and restored together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.files import append_line, keep_rows, read_json, write_json
from components.health import Guard, Jumps, Monitor, Responder, Saved
from components.learner import Learner
from components.learner.critic import Critic
from components.resume import ResumeState
from components.rollout import Engine
from components.scheduling import Schedule
from components.types import Outcome, Response, StepRecord


@dataclass
class RunState:
    """Everything that changes from step to step.

    ``step`` is the number of steps made, those that were undone included: it numbers the log, which only grows.
    ``progress`` is the number of steps that the policy has behind it; a roll-back lowers it.
    """

    learner: Learner
    engine: Engine
    schedule: Schedule
    monitor: Monitor
    responder: Responder
    resume: ResumeState
    critic: Critic | None = None
    jumps: Jumps = field(default_factory=Jumps)
    guard: Guard = field(init=False)
    step: int = 0
    progress: int = 0
    stopped_by: str | None = None
    saved: list[Saved] = field(default_factory=list)
    dev: tuple[float | None, float] = (None, 0.0)  # the latest dev pass@1 and its standard error
    entries: int = 0  # of the ledger
    blind: str = ""  # why nobody watches any more

    def __post_init__(self) -> None:
        self.guard = Guard(self.responder.started.health.responses)

    @property
    def log(self) -> Path:
        """The append-only record of the run so far."""
        return self.resume.directory / "records.jsonl"

    @property
    def ledger(self) -> Path:
        """The append-only record of what was done about it."""
        return self.resume.directory / "ledger.jsonl"

    def append(self, record: StepRecord) -> None:
        """Log one finished step."""
        append_line(self.log, record.to_dict())
        self.step, self.progress = record.step + 1, self.progress + 1

    def enter(self, entries: Iterable[Response | Outcome]) -> None:
        """Write into the ledger."""
        for entry in entries:
            append_line(self.ledger, entry.to_dict())
            self.entries += 1

    def checkpoint(self) -> None:
        """Save every stateful part; the folder appears whole or not at all."""
        if any(one.step == self.step for one in self.saved):
            return
        self.saved.append(Saved(self.step, self.progress, self.monitor.at_ease, *self.dev))
        self.saved = self._worth_keeping()
        self.resume.save(self.step, self._fill, keep={one.step for one in self.saved})

    def _worth_keeping(self) -> list[Saved]:
        """The newest one, and those that the run may be rolled back to: its beginning and the latest healthy ones."""
        if not self.responder.started.health.responses.enabled:
            return self.saved[-1:]
        most = self.responder.started.health.responses.keep
        healthy = [one.step for one in self.saved if one.at_ease and one.step][-most:]
        return [one for one in self.saved if one.step in (0, self.step, *healthy)]

    def _fill(self, directory: Path) -> None:
        self.learner.save(directory)
        if self.critic is not None:
            self.critic.save(directory)
        write_json(directory / "state.json", self.state_dict())

    def state_dict(self) -> dict[str, Any]:
        """All but the weights and the optimizer."""
        return {
            "schedule": self.schedule.state_dict(),
            "monitor": self.monitor.state_dict(),
            "responder": self.responder.state_dict(),
            "jumps": self.jumps.state_dict(),
            "guard": self.guard.state_dict(),
            "stopped_by": self.stopped_by,
            "progress": self.progress,
            "dev": list(self.dev),
            "saved": [one.to_dict() for one in self.saved],
            "entries": self.entries,
            "blind": self.blind,
        }

    def restore(self) -> None:
        """Continue from the newest checkpoint, if there is one; log lines written after it are cut off."""
        latest = self.resume.latest()
        if latest is None:
            self.log.unlink(missing_ok=True)
            self.ledger.unlink(missing_ok=True)
            return
        self.step, directory = latest
        state = read_json(directory / "state.json")
        self.responder.load_state_dict(state["responder"])
        # Before its state comes back: coefficients that follow a measurement belong to the settings they moved under.
        self.learner.configure(self.responder.settings.learner, self.responder.settings.objective)
        self._go_back(directory)
        self.stopped_by, self.entries, self.blind = state["stopped_by"], int(state["entries"]), state["blind"]
        self.saved = [Saved(**one) for one in state["saved"]]
        keep_rows(self.log, self.step)
        keep_rows(self.ledger, self.entries)

    def roll_back(self, to: Saved) -> None:
        """Weights, optimizer, schedule and monitor as they were; log, ledger and what was changed stay."""
        self._go_back(self.resume.folder(to.step))
        self.saved = [one for one in self.saved if one.step <= to.step]

    def _go_back(self, directory: Path) -> None:
        self.learner.load(directory)
        if self.critic is not None:
            self.critic.load(directory)
        self.engine.load_weights(self.learner.weights())
        state: dict[str, Any] = read_json(directory / "state.json")
        self.schedule.load_state_dict(state["schedule"])
        self.monitor.load_state_dict(state["monitor"])
        self.jumps.load_state_dict(state["jumps"])
        self.guard.load_state_dict(state["guard"])
        self.progress, self.dev = int(state["progress"]), tuple(state["dev"])
