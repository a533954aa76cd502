"""What a sink is given, and what it does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from components.catalog import Declaration
from components.types import Outcome, Response, Verdict


@dataclass(frozen=True)
class Run:
    """The run that is shown.

    ``key`` differs where a workspace was made again (`--fresh`): what is shown then is another run of the tracker.
    ``folder`` is the workspace, ``parameters`` are the settings by dotted name.
    """

    name: str
    key: str
    folder: Path
    parameters: Mapping[str, str | float] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Of the run in a tracker; no other has it."""
        return f"{self.name}-{self.key}"


@dataclass(frozen=True)
class Step:
    """One finished step: figures by the names that are shown, our signals, and a few completions as rows of a table."""

    number: int
    figures: Mapping[str, float]
    signals: Mapping[str, float] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    completions: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Note:
    """A verdict and what was done about it, or what came of that; ``number`` counts them in a run."""

    number: int
    step: int
    title: str
    text: str
    grave: bool
    entry: Response | Outcome


@dataclass(frozen=True)
class Batch:
    """Steps in order and the notes that came up meanwhile. ``at`` is its time in seconds since 1970.

    ``again``: the process died while it was sent, so that some of it may have arrived. Steps and time are as before.
    """

    at: float
    steps: tuple[Step, ...] = ()
    notes: tuple[Note, ...] = ()
    again: bool = False

    @property
    def time(self) -> str:
        """In ISO format."""
        return datetime.fromtimestamp(self.at, UTC).isoformat()


@dataclass(frozen=True)
class Results:
    """What a run came to: figures of its evaluation, its health as text, the report, and completions of the end."""

    figures: Mapping[str, float] = field(default_factory=dict)
    verdict: str = ""
    report: Path | None = None
    completions: tuple[Mapping[str, Any], ...] = ()


class Sink(ABC):
    """One run in one tracker. A single thread calls it. Whatever it raises: the batch is sent again later."""

    @abstractmethod
    def send(self, batch: Batch) -> None:
        """Return when the tracker has it."""

    def finish(self, results: Results, at: float) -> None:  # noqa: B027
        """The run has ended; called once more where its results change."""

    def close(self) -> None:  # noqa: B027
        """Give up connections and files; called also after `send` failed."""


@dataclass(frozen=True)
class SinkEntry(Declaration):
    """``call(run, settings)`` opens a `Sink`. ``package`` is the module that has to be installed for it."""

    package: str = ""

    @property
    def installed(self) -> bool:
        """Whether its package is there; imports nothing."""
        return not self.package or find_spec(self.package) is not None

    def problems(self, settings: Any) -> list[str]:
        """It is not opened: that would show a run that is none."""
        return [] if self.installed else [f"the package {self.package!r} that it needs is not installed"]
