"""The parts of a training run that have state, and how all of them are saved and restored together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from components.canaries.baseline import CanaryBaseline
from components.files import append_line, cut_rows, dump_json, read_json, read_jsonl, write_jsonl
from components.health.falls import Counts, Falls, Forms
from components.health.monitor import Monitor
from components.health.responses import Guard, Responder, Saved
from components.learner.base import Learner
from components.learner.critic import Critic
from components.resume import ResumeState
from components.rollout import Engine, Rollout
from components.scheduling.checked import Checked
from components.seeds import derive
from components.training.checkpoints import CheckpointWriter, Finish, retained_checkpoints, rollback_candidates
from components.training.evidence import Evidence
from components.training.pending import from_row, to_row
from components.types import Group, Outcome, Prompt, Response, StepRecord

DEV_SIGNALS = ("dev_pass_at_1", "dev_pass_at_k", "dev_pass_at_1_se", "dev_pass_at_k_se", "train_dev_gap")
"""What hangs on how the dev split is judged."""
PENDING = "rollouts.jsonl"
NOT_COUNTED = "not_counted"
"""Note of a step that nothing was learned from because of a fault; the run makes it again."""


@dataclass
class RunState:
    """Everything that changes from step to step.

    ``step`` is the number of steps made, those that were undone included: it numbers the log, which only grows.
    ``progress`` is the number of steps that the policy has behind it; a roll-back lowers it.
    """

    learner: Learner
    engine: Engine
    schedule: Checked
    monitor: Monitor
    responder: Responder
    resume: ResumeState
    prompts: Mapping[str, Prompt]  # the training split by id, as it was read
    critic: Critic | None = None
    evidence: Evidence = field(default_factory=Evidence)
    suspected: bool = False  # a rule has fired; the dev split is measured next
    returned: Saved | None = None  # the checkpoint whose policy this is, until it is measured again
    canaries: CanaryBaseline = field(init=False)
    guard: Guard = field(init=False)
    writer: CheckpointWriter = field(init=False)
    step: int = 0
    progress: int = 0
    repeated: int = 0  # steps that did not count, since nothing could be learned from them
    stopped_by: str | None = None
    saved: list[Saved] = field(default_factory=list)
    back: set[int] = field(default_factory=set)  # steps of those that a roll-back may go to
    dev: tuple[float | None, float] = (None, 0.0)  # the latest dev pass@1 and its standard error
    entries: int = 0  # of the ledger
    blind: str = ""  # why the run is not watched any more
    blind_since: int = -1  # the step in which the monitor broke
    version: int = 0  # number of the latest hand-over of weights to the sampler
    pending: list[Rollout] = field(default_factory=list)  # sampled for the next steps

    def __post_init__(self) -> None:
        health = self.responder.started.health
        self.guard = Guard(health.responses, health.enabled)
        self.canaries = CanaryBaseline(health.canaries)
        self.writer = CheckpointWriter(self.resume, asynchronous=self.responder.started.train.checkpoints.asynchronous)

    @property
    def log(self) -> Path:
        """The append-only record of the run so far."""
        return self.resume.directory / "records.jsonl"

    @property
    def ledger(self) -> Path:
        """The append-only record of what was done about it."""
        return self.resume.directory / "ledger.jsonl"

    @property
    def dev_is_due(self) -> bool:
        """Whether this step measures the dev split: every ``eval_every`` steps, after a rule has fired, and after a
        return to a policy that was measured, to see whether that gives the same."""
        regular = self.progress % self.responder.started.train.eval_every == 0
        return regular or self.suspected or (self.returned is not None and self.returned.counts is not None)

    def seed(self, progress: int | None = None) -> int:
        """The seed of a step, the present one unless given: of its number in the training, and of the roll-backs and
        of the steps that did not count before it."""
        place: list[int | str] = [self.progress if progress is None else progress]
        place += [self.responder.attempt] if self.responder.attempt else []
        place += ["repeated", self.repeated] if self.repeated else []
        return derive(self.responder.started.seed, "train", *place)

    def append(self, record: StepRecord) -> None:
        """Log one finished step.

        Raises:
            InputError: a checkpoint that was being written meanwhile could not be.
        """
        self.writer.check()
        append_line(self.log, record.to_dict())
        again = NOT_COUNTED in record.notes
        if "update_move" in record.signals:
            self.evidence.usual_move.append(record.signals["update_move"])
        self.step, self.progress, self.repeated = record.step + 1, self.progress + (not again), self.repeated + again

    def enter(self, entries: Iterable[Response | Outcome]) -> None:
        """Write into the ledger."""
        for entry in entries:
            append_line(self.ledger, entry.to_dict())
            self.entries += 1

    def checkpoint(self, *, for_resume_only: bool = False) -> None:
        """Save every stateful part as it is now; the folder appears whole or not at all, a little later.

        One that is made ``for_resume_only`` is for the run's next start alone. No roll-back goes to it, and no saved
        state mentions it: the run goes on as it would have without a stop.

        Raises:
            InputError: this one, or the one before, could not be written.
        """
        if any(one.step == self.step for one in self.saved):
            return
        self.writer.wait()  # what a checkpoint knows of the others is true: they are complete
        if not for_resume_only:
            self._remember()
        self.writer.write(self.step, self._begin, keep={self.step, *(one.step for one in self.saved)})

    def _remember(self) -> None:
        """Count the checkpoint that is about to be made among those of the run, and choose which of them stay."""
        new = Saved(self.step, self.progress, self.monitor.healthy, *self.dev)
        settings = self.responder.started
        acting = settings.health.enabled and settings.health.responses.enabled
        apart = self.monitor.reach + settings.train.eval_every
        back = rollback_candidates([*self.candidates, new], settings.health.responses.keep, apart) if acting else [new]
        kept = retained_checkpoints([*self.saved, new], settings.train.checkpoints, judged=settings.health.enabled)
        self.back = {one.step for one in back}
        self.saved = [one for one in (*self.saved, new) if one in kept or one.step in self.back]

    @property
    def candidates(self) -> list[Saved]:
        """The checkpoints that a roll-back may go to."""
        return [one for one in self.saved if one.step in self.back]

    def _begin(self, directory: Path) -> Finish:
        """Copy what has to be, write what is small; the rest is written by what is returned."""
        parts: list[Learner | Critic] = [self.learner] if self.critic is None else [self.learner, self.critic]
        (directory / "state.json").write_text(dump_json(self.state_dict()), "utf-8")
        copied = self.responder.started.train.checkpoints.asynchronous
        rest = [part.snapshot(directory) if copied else partial(part.save, directory) for part in parts]

        pending = list(self.pending)

        def finish() -> None:
            write_jsonl(directory / PENDING, map(to_row, pending))
            for write in rest:
                write()

        return finish

    def state_dict(self) -> dict[str, Any]:
        """All but the weights and the optimizer."""
        return {
            "schedule": self.schedule.state_dict(),
            "monitor": self.monitor.state_dict(),
            "responder": self.responder.state_dict(),
            "evidence": self.evidence.state_dict(),
            "suspected": self.suspected,
            "returned": None if self.returned is None else self.returned.to_dict(),
            "canaries": self.canaries.state_dict(),
            "guard": self.guard.state_dict(),
            "stopped_by": self.stopped_by,
            "progress": self.progress,
            "repeated": self.repeated,
            "dev": list(self.dev),
            "saved": [one.to_dict() for one in self.saved],
            "back": sorted(self.back),
            "entries": self.entries,
            "blind": self.blind,
            "version": self.version,
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
        self.returned = None if state["returned"] is None else Saved.from_dict(state["returned"])
        self.evidence.load_state_dict(state["evidence"])
        self.suspected = bool(state["suspected"])
        self.version, self.repeated = int(state["version"]), int(state["repeated"])
        prompts = {prompt.id: prompt for prompt in self.schedule.prompts}
        self.pending = [from_row(row, prompts) for row in read_jsonl(directory / PENDING)]
        self.saved, self.back = [Saved.from_dict(one) for one in state["saved"]], set(state["back"])
        cut_rows(self.log, self.step)
        cut_rows(self.ledger, self.entries)

    def roll_back(self, to: Saved) -> None:
        """Weights, optimizer, schedule and monitor as they were; log, ledger and what was changed stay."""
        self.writer.wait()
        directory = self.resume.folder(to.step)
        state = read_json(directory / "state.json")
        self._load(directory, state)
        self.monitor.go_back(state["monitor"])
        self.saved = [one for one in self.saved if one.step <= to.step]
        self.pending = []
        self.returned = to

    def record_draws(self, groups: Sequence[Group]) -> None:
        """Note a step's prompts and answers, and completions that the verifier is shown again in later steps."""
        self.evidence.record_draws(groups)
        if not self.responder.settings.audit.reviewed:  # then a score is not the verifier's alone
            as_read = [group for group in groups if self.prompts.get(group.prompt.id) == group.prompt]
            self.evidence.golden.learn(as_read)

    @property
    def barred(self) -> frozenset[str]:
        """Ids of the prompts that are not trained on any more."""
        withheld, barred = self.responder.repairs.withheld, set(self.responder.quarantined)
        if withheld:
            barred |= {name for name, prompt in self.prompts.items() if prompt.family in withheld}
        return frozenset(barred)

    def measured(self, step: int, dev: float, error: float, held_out: Counts) -> None:
        """Note the dev pass@1 of a step: that of its first policy, and so of the checkpoint made before it."""
        self.dev = (dev, error)
        found = {name: list(count) for name, count in held_out.items()}
        self.saved = [
            replace(one, dev=dev, dev_se=error, counts=found) if one.step == step else one for one in self.saved
        ]

    def remeasure(self) -> None:
        """The dev split is judged otherwise from now on: earlier figures are no measure any more."""
        self.monitor.forget(DEV_SIGNALS)
        self.dev = (None, 0.0)
        self.saved = [replace(one, dev=None, dev_se=0.0, counts=None) for one in self.saved]
        self.evidence.falls, self.evidence.forms = Falls(), Forms()
        self.returned = None
        self.responder.pending.forget()

    def _load(self, directory: Path, state: Mapping[str, Any]) -> None:
        # Coefficients that follow a measurement belong to the settings that they moved under.
        then = self.responder.settings_of(state["responder"])
        self.learner.configure(then.learner, then.objective)
        shared = self.engine.rest()
        self.learner.load(directory)
        if shared:
            self.learner.rest()
        if self.critic is not None:
            self.critic.load(directory)
        self.engine.load_weights(self.learner.weights())
        self.schedule.load_state_dict(state["schedule"])
        self.schedule.fork(self.responder.attempt)
        self.evidence.go_back(state["evidence"])
        self.canaries.load_state_dict(state["canaries"])
        self.guard.load_state_dict(state["guard"])
        self.progress, self.dev = int(state["progress"]), tuple(state["dev"])
