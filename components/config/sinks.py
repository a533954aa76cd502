"""Trackers that show a run: ``sinks.NAME``. No byte of a run depends on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from components.config.base import Section
from components.config.extensions import PythonEntry

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


class SinkSettings(Section):
    """What every sink has."""

    names: Literal["trl", "verl", "prime-rl", "none"] = Field(
        "trl", description="Whose names figures have besides ours, `evenkeel/<signal>`: a file in configs/health/names."
    )
    completions: bool = Field(
        True, description="Show completions: the pair that a step keeps (train.keep_pairs), and samples of the end."
    )


class AutoSink(Section):
    """TensorBoard with its defaults where it is installed, and nothing where it is not."""

    kind: Literal["auto"] = "auto"


class TensorBoardSink(SinkSettings):
    """Event files."""

    kind: Literal["tensorboard"]
    folder: Path | None = Field(
        None, description="Each run gets a folder in it; null: logs/tensorboard of the workspace."
    )


class MlflowSink(SinkSettings):
    """A tracking server, and its registry of models. Name and password are read from MLflow's own variables."""

    kind: Literal["mlflow"]
    uri: str | None = Field(None, description="Of the tracking server; null: MLFLOW_TRACKING_URI.")
    experiment: str = Field("evenkeel", pattern=NAME, description="Experiment of the runs; it is created if absent.")
    model: str | None = Field(
        None,
        pattern=NAME,
        description="Registered model. A champion becomes a version of it with the alias `champion`, on the server of "
        "MLFLOW_TRACKING_URI of the process that promotes.",
    )

    def conflicts(self) -> Iterator[str]:
        if self.uri is not None and "@" in self.uri:
            yield "uri: name and password belong in MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"


class WandbSink(SinkSettings):
    """Weights & Biases. The key is read from WANDB_API_KEY."""

    kind: Literal["wandb"]
    project: str = Field("evenkeel", pattern=NAME, description="Project of the runs.")
    entity: str | None = Field(None, pattern=NAME, description="User or team; null: the default of the account.")
    mode: Literal["offline", "online"] = Field(
        "offline", description="offline: into logs/wandb of the workspace, for `wandb sync`. online: to the server."
    )


class TrackioSink(SinkSettings):
    """trackio's local database."""

    kind: Literal["trackio"]
    project: str = Field("evenkeel", pattern=NAME, description="Project of the runs.")
    folder: Path | None = Field(None, description="Of its databases; null: TRACKIO_DIR, or trackio's own.")


class PythonSink(PythonEntry):
    """A `SinkEntry` of `components.sinks` from outside the project. Its code is not digested: no run depends on it."""

    group: ClassVar[str] = "evenkeel.sinks"
    counts: ClassVar[bool] = False


Sink = Annotated[
    AutoSink | TensorBoardSink | MlflowSink | WandbSink | TrackioSink | PythonSink, Field(discriminator="kind")
]
Sinks = dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,40}$")], Sink | None]


def default_sinks() -> Sinks:
    """Without settings."""
    return {"tensorboard": AutoSink()}
