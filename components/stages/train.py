"""Stage `train`: GRPO from the SFT checkpoint, under watch; or what another trainer made of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from components.adoption import adopt_checkpoint, adopt_log
from components.config import Settings
from components.config.pins import check_digest
from components.config.training import Adopted
from components.data.prompts import read_prompts
from components.directories import write_directory
from components.errors import NoCandidate
from components.files import read_json, read_jsonl, sha256_tree, write_json, write_jsonl, write_text
from components.health.records import undone
from components.health.responses import Ledger, read_ledger
from components.health.summaries import LiveLedger, health_line
from components.layout import Layout
from components.progress import progress
from components.scheduling import ranked_clusters
from components.sinks.follow import exported
from components.training.assembly import assembled
from components.training.loop import train
from components.training.run import RunState
from components.types import StepRecord

REFUSALS = {
    "audit": ("pass", "the verifier failed its audit", "fix what the reasons name, or choose another"),
    "triage": ("accept", "triage refused the checkpoint", "train the SFT checkpoint further or choose easier prompts"),
}
"""Stage -> the verdict with which it accepts, what to say of another one, and what to do then."""


def run(settings: Settings, layout: Layout) -> None:
    """Train, or continue where a run was stopped or killed; write `out/train` and its metrics."""
    overrides = {stage: overridden(stage, settings, layout) for stage in REFUSALS}
    if settings.train.adopted is not None:
        take_over(settings.train.adopted, settings, layout, overrides)
        return
    clusters = ranked_clusters(read_prompts(layout.split("train")), layout)
    with (
        assembled(settings, layout, clusters) as parts,
        exported(settings, layout, lambda said: print(said, file=sys.stderr, flush=True)),
        progress("train", settings.train.steps) as bar,
    ):
        state = parts.state
        live = LiveLedger(state.ledger)

        def on_step(record: StepRecord) -> None:
            live.update(record.step)
            shown = replace(record, notes={"monitor_failed": state.blind}) if state.blind else record
            bar.advance(state.progress, health_line(shown, live.verdicts, live.ledger))

        with parts.stopping.defer_signal():  # but where the loop says so
            train(parts, on_step)
            write_outputs(state, settings, layout, overrides)  # while the learner still has the policy


def overridden(stage: str, settings: Settings, layout: Layout) -> str:
    """The reason for training in spite of what stage `audit` or `triage` refused; "" where it refused nothing.

    Raises:
        NoCandidate: it refused, and the settings give no reason to go on; names the stage's own reasons.
    """
    accepts, said, how = REFUSALS[stage]
    result = read_json(getattr(layout, stage), how=f"run the {stage} stage first")
    if result["verdict"] == accepts:
        return ""
    override: str = getattr(settings, stage).override
    if override.strip():
        return override
    reasons = "\n".join(f"  - {reason}" for reason in result["reasons"])
    how = f"{how}; to go on in spite of it, give a reason: --set {stage}.override='...'"
    where = layout.audit_page if stage == "audit" else layout.triage
    raise NoCandidate(f"{said}:\n{reasons}", where=where, how=how)


def write_outputs(state: RunState, settings: Settings, layout: Layout, overrides: Mapping[str, str]) -> None:
    """The policy as training left it, the whole record, and the summary.

    In the summary ``final`` are the signals of the last step on record. Where the run went back after it the policy is
    older: ``checkpoint_step`` says of how many steps it is.
    """
    records = list(read_jsonl(state.log))
    verdicts = [verdict for row in records for verdict in row["notes"]["verdicts"]]
    entries = list(read_jsonl(state.ledger)) if state.entries else []
    pairs = sound_pairs(records, read_ledger(state.ledger) if state.entries else Ledger())
    stop: dict[str, Any] = next((v for v in reversed(verdicts) if v["rule"] == state.stopped_by), {})
    summary = {
        "outcome": "stopped" if state.stopped_by else "completed",
        "steps": state.step,
        "progress": state.progress,
        "rollbacks": state.responder.attempt,
        "stopped_by": state.stopped_by,
        "reason": stop.get("reason", ""),
        "checkpoint_step": state.progress,
    }
    write_stage(layout, state.learner.save_policy, Written(records, verdicts, pairs, entries), summary, overrides)


def take_over(adopted: Adopted, settings: Settings, layout: Layout, overrides: Mapping[str, str]) -> None:
    """The same outputs from what another trainer left. Nothing in them says that a run of ours was watched.

    Raises:
        InputError: checkpoint, adapter or log are not as they must be, or have changed since the run began.
    """
    for one in (adopted.checkpoint, adopted.log):
        check_digest(one.path, one.sha256)
    history = adopt_log(adopted, settings.health.rules if settings.health.enabled else {})
    policy, left_out = adopt_checkpoint(adopted.checkpoint.path, layout.sft_checkpoint, settings)
    last = history.records[-1].step
    summary = {
        "outcome": "adopted",
        "trainer": history.trainer,
        "remarks": list(history.remarks),
        "left_out": left_out,
        "steps": len(history.records),
        "progress": last,
        "rollbacks": 0,
        "stopped_by": "",
        "reason": "",
        "checkpoint_step": last,
    }
    verdicts = [verdict.to_dict() for verdict in history.verdicts]
    write_stage(layout, policy.save, Written(history.rows, verdicts, [], []), summary, overrides)


class Written(NamedTuple):
    """The rows of the files in `out/train`."""

    records: Sequence[dict[str, Any]]
    verdicts: Sequence[dict[str, Any]]
    pairs: Sequence[dict[str, Any]]
    ledger: Sequence[dict[str, Any]]


def write_stage(
    layout: Layout,
    save_policy: Callable[[Path], None],
    rows: Written,
    summary: Mapping[str, Any],
    overrides: Mapping[str, str],
) -> None:
    """Write `out/train`, the curves and the summary."""

    def fill(directory: Path) -> None:
        save_policy(directory / layout.train_checkpoint.name)
        write_jsonl(directory / layout.records.name, rows.records)
        write_jsonl(directory / "verdicts.jsonl", rows.verdicts)
        write_jsonl(directory / layout.pairs.name, rows.pairs)
        write_jsonl(directory / layout.ledger.name, rows.ledger)

    write_directory(layout.train, fill)
    write_text(layout.curves, curves(rows.records))
    metrics = {
        **summary,
        "audit": "overridden" if overrides["audit"] else "pass",
        "audit_override": overrides["audit"],
        "triage": "overridden" if overrides["triage"] else "accept",
        "override": overrides["triage"],
        "checkpoint_sha256": sha256_tree(layout.train_checkpoint),
        "final": rows.records[-1]["signals"],
    }
    write_json(layout.train_metrics, metrics)


def sound_pairs(records: Sequence[dict[str, Any]], ledger: Ledger) -> list[dict[str, Any]]:
    """Takes the preference pairs out of the records. Those of steps that were undone and of prompts in quarantine are
    dropped: what the run itself disowned is nothing to train on."""
    gone = undone([row["step"] for row in records], ledger.responses)
    quarantined = {prompt for response in ledger.responses for prompt in response.quarantined}
    pairs = [pair for row in records for pair in row["notes"].pop("pairs")]
    return [pair for pair in pairs if pair["step"] not in gone and pair["prompt_id"] not in quarantined]


def curves(records: Sequence[dict[str, Any]]) -> str:
    """One row a step, one column a signal, as CSV for plots."""
    frame = pd.DataFrame([{"step": row["step"], **row["signals"]} for row in records])
    return str(frame[["step", *sorted(frame.columns.drop("step"))]].to_csv(index=False, lineterminator="\n"))
