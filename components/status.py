"""How the last execution of a stage ended.

Whoever starts a stage through DVC learns from DVC only that it failed. The stage itself therefore leaves its exit code
and message in the workspace; no file means that the stage was not executed, or was killed before it could say anything.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from components.files import os_errors, read_json, write_json
from components.layout import Layout


@dataclass(frozen=True, slots=True)
class StageStatus:
    """Exit code as in `components.errors`, and the message shown to the reader (empty on success)."""

    exit_code: int
    message: str = ""


def status_path(layout: Layout, stage: str) -> Path:
    """The file that says it."""
    return layout.state / "status" / f"{stage}.json"


def clear_status(layout: Layout, stage: str) -> None:
    """Forget how the stage ended before."""
    path = status_path(layout, stage)
    with os_errors("remove", path):
        path.unlink(missing_ok=True)


def write_status(layout: Layout, stage: str, status: StageStatus) -> None:
    """Record how the stage ended."""
    write_json(status_path(layout, stage), asdict(status))


def read_status(layout: Layout, stage: str) -> StageStatus | None:
    """How the stage ended since the last `clear_status`, if it could say so."""
    path = status_path(layout, stage)
    return StageStatus(**read_json(path)) if path.exists() else None
