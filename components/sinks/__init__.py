"""Sinks: they show a run in the trackers of others, and nothing of the run depends on them.

`SINKS` has every sink that there is, a line for each.

- `base` — what a sink is given; `feed` — reads what a training writes, and names its figures as dashboards expect
- `delivery` — sends it to one sink, once, whatever fails; `follow` — in threads
- `tensorboard`, `mlflow`, `wandb`, `trackio`, `prometheus` — one sink each
- ``python -m components.sinks`` — the process that follows a run; `champion` — a champion in MLflow's registry
"""

from __future__ import annotations

from collections.abc import Iterator

from components.catalog import Catalog
from components.config import Settings
from components.config.judgement import PrometheusSettings
from components.config.shipped import install
from components.config.sinks import AutoSink, MlflowSink, PythonSink, TensorBoardSink, TrackioSink, WandbSink
from components.errors import InputError
from components.sinks.base import Batch, Results, Run, Sink, SinkEntry, Step
from components.sinks.mlflow import Mlflow
from components.sinks.prometheus import Prometheus
from components.sinks.tensorboard import TensorBoard
from components.sinks.trackio import Trackio
from components.sinks.wandb import Wandb

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
ChosenSink = TensorBoardSink | MlflowSink | WandbSink | TrackioSink | PythonSink

SINKS: Catalog[SinkEntry] = Catalog(
    SinkEntry,
    {
        "tensorboard": SinkEntry(TensorBoard, TensorBoardSink, "tensorboard"),
        "mlflow": SinkEntry(Mlflow, MlflowSink, "mlflow"),
        "wandb": SinkEntry(Wandb, WandbSink, "wandb"),
        "trackio": SinkEntry(Trackio, TrackioSink, "trackio"),
        "prometheus": SinkEntry(Prometheus, PrometheusSettings),  # of `health.prometheus`: it is where the training is
    },
)


def chosen_sinks(settings: Settings) -> Iterator[tuple[str, ChosenSink]]:
    """The sinks that are on, by name; none for an adopted checkpoint, whose steps its own trainer has shown."""
    if settings.train.adopted is not None:
        return
    for name, section in settings.sinks.items():
        if isinstance(section, AutoSink):
            section = TensorBoardSink(kind="tensorboard") if SINKS["tensorboard"].installed else None
        if section is not None:
            yield name, section


def missing_packages(settings: Settings) -> Iterator[tuple[str, str]]:
    """Names of sinks whose package is not installed, and how to install it. Imports nothing."""
    for name, section in chosen_sinks(settings):
        if not isinstance(section, PythonSink) and not SINKS[section.kind].installed:
            # trackio and the tested set differ about pillow
            yield f"sinks.{name}", install(section.kind, tested=section.kind != "trackio")


def check_sinks(settings: Settings) -> None:
    """Refuse a run one of whose sinks cannot work.

    Raises:
        InputError: a package is missing.
    """
    for where, how in missing_packages(settings):
        raise InputError("the package of this sink is not installed", where=where, how=f"{how}, or set it to null")
