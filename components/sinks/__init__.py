"""Sinks: they show a run in the trackers of others, and nothing of the run depends on them.

- `base` — what a sink is given, and the registry; `names` — figures under the names that dashboards expect
- `feed` — reads what a training writes; `delivery` — sends it to one sink, once, whatever fails; `follow` — in threads
- `tensorboard`, `mlflow`, `wandb`, `trackio`, `prometheus` — one sink each
- ``python -m components.sinks`` — the process that follows a run; `champion` — a champion in MLflow's registry
"""

from components.sinks.base import Batch, Results, Run, Sink, SinkEntry, Step
from components.sinks.catalogue import SINKS, check_sinks, chosen_sinks, missing_packages

__all__ = [
    "SINKS",
    "Batch",
    "Results",
    "Run",
    "Sink",
    "SinkEntry",
    "Step",
    "check_sinks",
    "chosen_sinks",
    "missing_packages",
]
