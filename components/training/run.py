"""The parts of a training run that have state, and how all of them are saved and restored together."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from components.files import append_line, keep_rows, read_json, write_json
from components.health import Jumps, Monitor
from components.learner import Learner
from components.learner.critic import Critic
from components.resume import ResumeState
from components.rollout import Engine
from components.scheduling import Schedule
from components.types import StepRecord


@dataclass
class RunState:
    """Everything that changes from step to step. ``step`` is the number of finished steps."""

    learner: Learner
    engine: Engine
    schedule: Schedule
    monitor: Monitor
    resume: ResumeState
    critic: Critic | None = None
    jumps: Jumps = field(default_factory=Jumps)
    step: int = 0
    stopped_by: str | None = None

    @property
    def log(self) -> Path:
        """The append-only record of the run so far."""
        return self.resume.directory / "records.jsonl"

    def append(self, record: StepRecord) -> None:
        """Log one finished step."""
        append_line(self.log, record.to_dict())
        self.step = record.step + 1

    def checkpoint(self) -> None:
        """Save every stateful part; the folder appears whole or not at all."""
        self.resume.save(self.step, self._fill)

    def _fill(self, directory: Path) -> None:
        self.learner.save(directory)
        if self.critic is not None:
            self.critic.save(directory)
        state = {
            "schedule": self.schedule.state_dict(),
            "monitor": self.monitor.state_dict(),
            "jumps": self.jumps.state_dict(),
            "stopped_by": self.stopped_by,
        }
        write_json(directory / "state.json", state)

    def restore(self) -> None:
        """Continue from the newest checkpoint, if there is one; log lines written after it are cut off."""
        latest = self.resume.latest()
        if latest is None:
            self.log.unlink(missing_ok=True)
            return
        self.step, directory = latest
        self.learner.load(directory)
        if self.critic is not None:
            self.critic.load(directory)
        self.engine.load_weights(self.learner.weights())
        state = read_json(directory / "state.json")
        self.schedule.load_state_dict(state["schedule"])
        self.monitor.load_state_dict(state["monitor"])
        self.jumps.load_state_dict(state["jumps"])
        self.stopped_by = state["stopped_by"]
        keep_rows(self.log, self.step)
