"""trackio: its local database. A row has a key of ours, so that one that is sent again is kept once."""

from __future__ import annotations

import os
from typing import Any

from components.config.sinks import TrackioSink
from components.sinks.base import Batch, Results, Run, Sink


class Trackio(Sink):
    def __init__(self, run: Run, settings: TrackioSink) -> None:
        if settings.folder is not None:
            os.environ["TRACKIO_DIR"] = str(settings.folder.resolve())  # read when it is imported
        import trackio
        from trackio.sqlite_storage import SQLiteStorage

        self._trackio, self._storage = trackio, SQLiteStorage
        self._run, self._project, self._last = run, settings.project, 0

    def send(self, batch: Batch) -> None:
        rows: list[dict[str, Any]] = []
        for step in batch.steps:
            self._last = step.number
            rows.append({**step.figures, **self._table("completions", step.completions, step.number)})
        numbers = [step.number for step in batch.steps]
        self._log(rows, numbers, batch.time, [f"{self._run.id}-{number}" for number in numbers])
        self._storage.bulk_alert(
            self._project,
            self._run.name,
            [note.title for note in batch.notes],
            [note.text for note in batch.notes],
            ["warn" if note.grave else "info" for note in batch.notes],
            [note.step for note in batch.notes],
            [batch.time] * len(batch.notes),
            [f"{self._run.id}-note-{note.number}" for note in batch.notes],
            self._run.id,
        )

    def finish(self, results: Results, at: float) -> None:
        words = self._trackio.Markdown(results.verdict)._to_dict()
        row = {**results.figures, "verdict": words, **self._table("samples", results.completions, self._last)}
        self._log([row], [self._last], Batch(at).time, [f"{self._run.id}-results-{at}"])
        if results.report is not None:
            self._trackio.save(results.report, project=self._project)

    def _log(self, rows: list[dict[str, Any]], steps: list[int], time: str, keys: list[str]) -> None:
        config = {**self._run.parameters} if 0 in steps else None
        times = [time] * len(rows)
        self._storage.bulk_log(
            self._project, self._run.name, rows, steps, times, config, log_ids=keys, run_id=self._run.id
        )

    def _table(self, name: str, rows: tuple[Any, ...], step: int) -> dict[str, Any]:
        if not rows:
            return {}
        table = self._trackio.Table(data=[dict(row) for row in rows])
        return {name: table._to_dict(self._project, self._run.name, step)}
