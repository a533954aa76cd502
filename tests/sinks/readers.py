"""What each tracker has of a run, read back by its own means."""

from __future__ import annotations

import json
import sqlite3
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BLOCK, HEAD = 32768, 7
"""Of the log of records that W&B writes offline, in the format of LevelDB's."""


@dataclass
class Shown:
    """Points in the order in which they are stored, so that one that is there twice shows."""

    points: list[tuple[int, str, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def values(self, name: str) -> list[tuple[int, float]]:
        return [(step, value) for step, other, value in self.points if other == name]


def tensorboard(folder: Path) -> Shown:
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    found = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    found.Reload()
    shown = Shown()
    for tag in found.Tags()["tensors"]:
        about = found.SummaryMetadata(tag).plugin_data.plugin_name
        for event in found.Tensors(tag):
            value = event.tensor_proto
            if about == "scalars":
                shown.points.append((event.step, tag, float(make_ndarray(value))))
            elif tag == "evenkeel/notes":
                shown.notes.append(f"{event.step} {value.string_val[0].decode()}")
            elif about == "text":
                shown.tables.append(f"{tag} {value.string_val[0].decode()}")
    if "_hparams_/session_start_info" in found.Tags()["tensors"]:
        from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

        content = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
        values = HParamsPluginData.FromString(content).session_start_info.hparams
        shown.parameters = {name: value.string_value or value.number_value for name, value in values.items()}
    return shown


def mlflow(uri: str, run_id: str) -> Shown:
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("evenkeel")
    (run,) = client.search_runs([experiment.experiment_id], f"tags.`evenkeel.id` = '{run_id}'")
    shown = Shown(parameters=run.data.params)
    for name in run.data.metrics:
        token = None
        while True:
            page = client._tracking_client.store.get_metric_history(run.info.run_id, name, 20000, token)
            shown.points += [(point.step, name, point.value) for point in page]
            if not (token := page.token):
                break
    shown.notes = [f"{name} {text}" for name, text in sorted(run.data.tags.items()) if name.startswith("note.")]
    shown.files = [one.path for one in client.list_artifacts(run.info.run_id)]
    shown.tables = [one.path for one in client.list_artifacts(run.info.run_id, "completions")]
    return shown


def wandb(folder: Path) -> Shown:
    from wandb.proto.wandb_internal_pb2 import Record

    shown, parameters = Shown(), dict[str, Any]()
    for path in sorted(folder.glob("offline-run-*/*.wandb"), key=lambda path: path.stat().st_mtime):
        deadline = time.monotonic() + 60
        found: list[Any] = []
        while not (found and found[-1].HasField("exit")) and time.monotonic() < deadline:  # its own process writes
            found = [Record.FromString(data) for data in records(path.read_bytes())]
            time.sleep(0.1)
        for record in found:
            parameters |= {one.key: json.loads(one.value_json) for one in record.run.config.update}
            row = {one.key or "/".join(one.nested_key): json.loads(one.value_json) for one in record.history.item}
            step = record.history.step.num if record.history.ByteSize() else 0
            for name, value in row.items():
                if name == "evenkeel/notes":
                    shown.notes.append(f"{step} {value}")
                elif name.endswith("/_type"):
                    shown.tables.append(f"{name} {value}")
                elif isinstance(value, float | int) and not name.startswith("_"):
                    shown.points.append((step, name, value))
            for one in record.summary.update:
                if one.key.startswith("eval/"):
                    shown.points.append((0, one.key, json.loads(one.value_json)))
            if record.request.log_artifact.artifact.name or record.artifact.name:
                shown.files.append(record.artifact.name or record.request.log_artifact.artifact.name)
    shown.parameters = parameters
    return shown


def records(data: bytes) -> Iterator[bytes]:
    """The records of a log of LevelDB's format, behind W&B's own head."""
    place, parts = HEAD, list[bytes]()
    while place + HEAD <= len(data):
        if BLOCK - place % BLOCK < HEAD:
            place += BLOCK - place % BLOCK
            continue
        _, length, kind = struct.unpack("<IHB", data[place : place + HEAD])
        if kind == 0:
            return
        parts.append(data[place + HEAD : place + HEAD + length])
        place += HEAD + length
        if kind in (1, 4):  # whole, or the last part of one
            yield b"".join(parts)
            parts = []


def trackio(folder: Path, run_id: str) -> Shown:
    shown = Shown()
    with sqlite3.connect(folder / "evenkeel.db") as database:
        rows = database.execute("SELECT step, metrics FROM metrics WHERE run_id = ? ORDER BY id", (run_id,))
        for step, text in rows:
            for name, value in json.loads(text).items():
                if isinstance(value, dict):
                    shown.tables.append(f"{name} {value['_type']}")
                else:
                    shown.points.append((step, name, value))
        alerts = database.execute("SELECT step, title, text FROM alerts WHERE run_id = ?", (run_id,))
        shown.notes = [" ".join(map(str, row)) for row in alerts]
        ((config,),) = database.execute("SELECT config FROM configs WHERE run_id = ?", (run_id,)).fetchall()
        shown.parameters = json.loads(config)
    shown.files = [path.name for path in (folder / "media").rglob("report.html")]
    return shown
