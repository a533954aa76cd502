"""MLflow: a run on a tracking server. A point that has the step, time and value of another is kept once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from components.config.sinks import MlflowSink
from components.sinks.base import Batch, Results, Run, Sink

POINTS, PARAMETERS, LONGEST = 1000, 100, 5000
"""Of one request, and characters of a value: limits of MLflow's REST API."""
DEFAULTS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
"""Unless the environment has its own: a request is tried again by us, and nothing is reported to others."""


def client_of(uri: str | None) -> Any:
    """MLflow's client; where ``uri`` is None for the server of MLFLOW_TRACKING_URI."""
    os.environ.update({name: value for name, value in DEFAULTS.items() if name not in os.environ})
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


class Mlflow(Sink):
    def __init__(self, run: Run, settings: MlflowSink) -> None:
        from mlflow.entities import Param

        self._client = client_of(settings.uri)
        found = self._client.get_experiment_by_name(settings.experiment)
        experiment = found.experiment_id if found else self._client.create_experiment(settings.experiment)
        wanted = f"tags.`evenkeel.id` = '{run.id}'"
        runs = self._client.search_runs([experiment], wanted, max_results=1)
        tags = {"evenkeel.id": run.id, "evenkeel.run": run.name}
        self._run = runs[0] if runs else self._client.create_run(experiment, run_name=run.name, tags=tags)
        self._id = self._run.info.run_id
        if self._run.info.status != "RUNNING":
            self._client.update_run(self._id, status="RUNNING")
        missing = {name: value for name, value in run.parameters.items() if _key(name) not in self._run.data.params}
        params = [Param(_key(name), str(value)[:LONGEST]) for name, value in missing.items()]
        for start in range(0, len(params), PARAMETERS):
            self._client.log_batch(self._id, params=params[start : start + PARAMETERS])

    def send(self, batch: Batch) -> None:
        points = [point for step in batch.steps for point in _points(step.figures, step.number, batch.at)]
        for start in range(0, len(points), POINTS):
            self._client.log_batch(self._id, metrics=points[start : start + POINTS])
        for note in batch.notes:
            self._client.set_tag(self._id, f"note.{note.number:04d}.step-{note.step}", _short(note.title, note.text))
        for step in batch.steps:
            if step.completions:
                self._table(step.completions, f"completions/step-{step.number:06d}.json")

    def finish(self, results: Results, at: float) -> None:
        self._client.log_batch(self._id, metrics=list(_points(results.figures, 0, at)))
        self._client.set_tag(self._id, "mlflow.note.content", results.verdict[:LONGEST])
        if results.completions:
            self._table(results.completions, "completions/samples.json")
        if results.report is not None:
            self._client.log_artifact(self._id, str(results.report))
        self._client.set_terminated(self._id)

    def _table(self, rows: tuple[Mapping[str, Any], ...], path: str) -> None:
        heads = list(rows[0])
        self._client.log_dict(self._id, {"columns": heads, "data": [[row.get(h) for h in heads] for row in rows]}, path)


def _points(figures: Mapping[str, float], step: int, at: float) -> Iterator[Any]:
    from mlflow.entities import Metric

    for name, value in figures.items():
        yield Metric(_key(name), value, round(at * 1000), step)


def _key(name: str) -> str:
    """A name that MLflow accepts."""
    return re.sub(r"[^\w\-./: ]", "_", name)[:250]


def _short(title: str, text: str) -> str:
    return f"{title}: {text}"[:LONGEST] if text else title
