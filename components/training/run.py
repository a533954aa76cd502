"""The parts of a training run that have state, and how all of them are saved and restored together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from components.files import append_line, keep_rows, read_json, write_json
from components.health import CanaryBaseline, Guard, Jumps, Monitor, Responder, Saved
from components.learner import Learner
from components.learner.critic import Critic
from components.resume import ResumeState
from components.rollout import Engine
from components.scheduling import Schedule
from components.types import Outcome, Response, StepRecord

DEV_SIGNALS = ("dev_pass_at_1", "dev_pass_at_k", "dev_pass_at_1_se", "dev_pass_at_k_se", "train_dev_gap")
"""What hangs on how the dev split is judged."""


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
    canaries: CanaryBaseline = field(default_factory=CanaryBaseline)
    guard: Guard = field(init=False)
    step: int = 0
    progress: int = 0
    stopped_by: str | None = None
    saved: list[Saved] = field(default_factory=list)
    dev: tuple[float | None, float] = (None, 0.0)  # the latest dev pass@1 and its standard error
    entries: int = 0  # of the ledger
    blind: str = ""  # why nobody watches any more

    def __post_init__(self) -> None:
        health = self.responder.started.health
        self.guard = Guard(health.responses, health.enabled)

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
        """The newest one, and those that the run may be rolled back to: its beginning, the latest healthy ones, and two
        so far apart that one of them is older than the evidence of any verdict."""
        settings = self.responder.started
        if not (settings.health.enabled and settings.health.responses.enabled):
            return self.saved[-1:]
        healthy = [one.step for one in self.saved if one.at_ease and one.step]
        apart: list[int] = []
        for step in healthy:
            if not apart or step - apart[-1] >= self.monitor.reach + settings.train.eval_every:
                apart.append(step)
        kept = (0, self.step, *healthy[-settings.health.responses.keep :], *apart[-2:])
        return [one for one in self.saved if one.step in kept]

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
            "canaries": self.canaries.state_dict(),
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
        self._load(directory, state)
        self.monitor.load_state_dict(state["monitor"])
        self.stopped_by, self.entries, self.blind = state["stopped_by"], int(state["entries"]), state["blind"]
        self.saved = [Saved(**one) for one in state["saved"]]
        keep_rows(self.log, self.step)
        keep_rows(self.ledger, self.entries)

    def roll_back(self, to: Saved) -> None:
        """Weights, optimizer, schedule and monitor as they were; log, ledger and what was changed stay."""
        directory = self.resume.folder(to.step)
        state = read_json(directory / "state.json")
        self._load(directory, state)
        self.monitor.go_back(state["monitor"])
        self.saved = [one for one in self.saved if one.step <= to.step]

    def measured(self, step: int, dev: float, error: float) -> None:
        """Note the dev pass@1 of a step: that of its first policy, and so of the checkpoint made before it."""
        self.dev = (dev, error)
        self.saved = [replace(one, dev=dev, dev_se=error) if one.step == step else one for one in self.saved]

    def measure_anew(self) -> None:
        """The dev split is judged otherwise from now on: earlier figures are no measure any more."""
        self.monitor.forget(DEV_SIGNALS)
        self.dev = (None, 0.0)
        self.saved = [replace(one, dev=None, dev_se=0.0) for one in self.saved]

    def _load(self, directory: Path, state: Mapping[str, Any]) -> None:
        # Coefficients that follow a measurement belong to the settings that they moved under.
        then = self.responder.settings_of(state["responder"])
        self.learner.configure(then.learner, then.objective)
        self.learner.load(directory)
        if self.critic is not None:
            self.critic.load(directory)
        self.engine.load_weights(self.learner.weights())
        self.schedule.load_state_dict(state["schedule"])
        self.schedule.fork(self.responder.attempt)
        self.jumps.load_state_dict(state["jumps"])
        self.canaries.load_state_dict(state["canaries"])
        self.guard.load_state_dict(state["guard"])
        self.progress, self.dev = int(state["progress"]), tuple(state["dev"])
