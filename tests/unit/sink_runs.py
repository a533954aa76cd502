"""A run's log as a training writes it, and a sink that can be set to fail."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from components.files import append_line, cut_rows, write_jsonl, write_text
from components.layout import Layout
from components.sinks.base import Batch, Results, Run, Sink
from components.sinks.delivery import Delivery
from components.sinks.feed import Feed, translator
from components.types import Outcome, Response, StepRecord, Verdict

PAIR = {"prompt_id": "p", "prompt": "1+1=", "chosen": "#2", "chosen_reward": 1.0, "rejected": "#3"}


class Log:
    """The files of `.state/train` in a workspace."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)
        self.records = self.layout.state / "train" / "records.jsonl"
        self.ledger = self.records.with_name("ledger.jsonl")

    def steps(self, start: int, end: int, scale: float = 1.0) -> None:
        """Steps as they are made; one of the same number is the same unless ``scale`` is another."""
        for step in range(start, end):
            verdicts = [vars_of(Verdict("low", "warn", step, "why"))] if step % 10 == 9 else []
            notes = {"pairs": [PAIR], "verdicts": verdicts}
            append_line(self.records, StepRecord(step, {"reward": scale * step, "entropy": 0.5}, notes).to_dict())

    def enter(self, *entries: Response | Outcome) -> None:
        for entry in entries:
            append_line(self.ledger, entry.to_dict())

    def resume(self, step: int, entries: int = 0) -> None:
        """Cut back to a checkpoint, as a run does that goes on."""
        cut_rows(self.records, step)
        cut_rows(self.ledger, entries)

    def report(self, text: str = "<p>it passed</p>") -> None:
        write_text(self.layout.report, text)
        write_text(self.layout.verdict, "**Healthy.**")
        write_text(self.layout.evaluation, '{"trained": {"pass_at_1": 0.75, "slices": {}}, "prompts": 8}')
        write_jsonl(self.layout.samples, [{"prompt": "1+1=", "after": "#2"}])


def vars_of(verdict: Verdict) -> dict[str, Any]:
    return {name: getattr(verdict, name) for name in ("rule", "level", "step", "reason")}


def response(number: int, step: int, level: Any = "intervene", **more: Any) -> Response:
    return Response(number, step, "collapse", "intervene", level, "entropy is low", **more)


class Tracker:
    """What a tracker has: by step, by the number of a note, and at the end."""

    def __init__(self) -> None:
        self.steps: dict[int, dict[str, float]] = {}
        self.arrived: list[int] = []
        self.notes: dict[int, str] = {}
        self.results: list[Results] = []
        self.times: dict[int, float] = {}
        self.opened = 0
        self.fault: Callable[[Batch], object] = lambda batch: None
        self.hangs = threading.Event()


class Fake(Sink):
    def __init__(self, tracker: Tracker) -> None:
        tracker.opened += 1
        self.tracker = tracker

    def send(self, batch: Batch) -> None:
        for step in batch.steps:
            self.tracker.arrived.append(step.number)
            self.tracker.steps[step.number] = dict(step.figures)
            self.tracker.times[step.number] = batch.at
        self.tracker.fault(batch)
        self.tracker.notes |= {note.number: f"{note.step} {note.title} {note.text}".strip() for note in batch.notes}

    def finish(self, results: Results, at: float) -> None:
        self.tracker.results.append(results)


def delivery(root: Path, tracker: Tracker, said: list[str] | None = None, names: str = "trl") -> Delivery:
    """As a process that starts has it."""
    feed = partial(Feed, Layout(root), translator(names), 1)
    memory = Layout(root).state / "sinks" / "fake.json"
    return Delivery("fake", lambda: Fake(tracker), feed, memory, ([] if said is None else said).append)


def drain(one: Delivery, *, last: bool = False) -> None:
    while one.attempt(last=last):
        pass


RUN = Run("demo-1", "0badcafe", Path("runs/demo-1"), {"seed": 0, "name": "demo"})
