from __future__ import annotations

from pathlib import Path
from typing import Any

from components.stages.work import SIGNALS, checkpoint, work

from components.config import Settings
from components.directories import write_directory
from components.errors import NoCandidate
from components.files import append_line, read_json, sha256_tree, write_json, write_jsonl, write_text
from components.health.monitor import replay
from components.layout import Layout
from components.types import StepRecord

ODD = {3: {"canaries_beyond_warn": 1.0}}
"""At this step a rule warns."""
LEDGER: list[dict[str, Any]] = [
    {"kind": "response", "number": 1, "step": 3, "rule": "entropy_low", "asked": "rollback", "level": "rollback",
     "reason": "fell", "saw": {"entropy": [0.4, 0.2]}, "changes": [{"knob": "learner.lr", "before": 0.2, "after": 0.1}],
     "back_to": 1, "quarantined": [], "did": ""},
    {"kind": "outcome", "of": 1, "step": 5, "recovered": True, "signals": {"entropy": [0.2, 0.4]}, "cost_steps": 3},
]  # fmt: skip


def run(settings: Settings, layout: Layout) -> None:
    refused = read_json(layout.triage)["verdict"] == "refuse"
    if refused and not settings.triage.override:
        raise NoCandidate("triage refused the checkpoint", where=layout.triage, how="override it")

    def fill(folder: Path) -> None:
        checkpoint(folder / "checkpoint", settings.learner.lr)
        records = [StepRecord(number, SIGNALS | ODD.get(number, {})) for number in range(settings.train.steps)]
        verdicts = replay(settings.health.rules, records)
        write_jsonl(folder / "records.jsonl", [record.to_dict() for record in records])
        write_jsonl(folder / "pairs.jsonl", [])
        write_jsonl(folder / "ledger.jsonl", LEDGER)
        write_jsonl(folder / "verdicts.jsonl", [verdict.to_dict() for verdict in verdicts])

    def step(done: int) -> str:
        accuracy = done / settings.train.steps
        if done % 10 == 0:
            verdicts = [{"rule": "entropy_low", "level": "warn", "step": done, "reason": "fell"}] if done == 30 else []
            signals = {"accuracy": accuracy, "entropy": 0.5, "lr": settings.learner.lr}
            row = {"step": done, "signals": signals, "notes": {"verdicts": verdicts}}
            append_line(layout.state / "train" / layout.records.name, row)
        return f"acc {accuracy:.2f}"

    work("train", layout, settings.train.steps, step)
    write_directory(layout.train, fill)
    write_text(layout.curves, "step,accuracy\n0,1\n")
    digest = sha256_tree(layout.train_checkpoint)
    steps, override = settings.train.steps, settings.triage.override if refused else ""
    ended = {"outcome": "completed", "steps": steps, "progress": steps, "stopped_by": None}
    said = {"audit": "pass", "triage": "overridden" if override else "accept", "override": override}
    write_json(layout.train_metrics, {**ended, **said, "checkpoint_sha256": digest})
