"""Micro runs of the real loop, and how to kill them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from factories import settings, workspace

from components.config import Settings
from components.data.prompts import read_prompts
from components.files import manifest, read_jsonl
from components.layout import Layout
from components.scheduling.ranked import ranked_clusters
from components.stages import train as stage
from components.training.assembly import assembled
from components.training.loop import train as loop
from components.training.run import RunState
from components.types import StepRecord


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


def train(root: Path, chosen: Settings | None = None, **workspace_options: Any) -> Layout:
    """The stage, in a new workspace or in the one that is there."""
    layout = Layout(root) if (root / "out").exists() else workspace(root, **workspace_options)
    stage.run(chosen or settings(), layout)
    return layout


def watched(root: Path, chosen: Settings, **wrappers: Any) -> tuple[RunState, list[StepRecord]]:
    """The loop alone, with a fault between it and a real part; its state and the records of its steps."""
    layout, found = workspace(root), []
    clusters = ranked_clusters(read_prompts(layout.split("train")), layout)
    with assembled(chosen, layout, clusters, **wrappers) as parts:
        loop(parts, found.append)
    return parts.state, found


def records(layout: Layout) -> list[dict[str, Any]]:
    return list(read_jsonl(layout.records))


def outputs(layout: Layout) -> dict[str, str]:
    """Digest of every file that the stage writes."""
    files = manifest(layout.out)
    return {name: files[name] for name in files if name.startswith(("train", "curves"))}


@contextmanager
def killed(monkeypatch: pytest.MonkeyPatch, method: str, times: int, *, after: bool) -> Iterator[None]:
    """Die in the n-th call of a method of the run's state, before or after it has done its work."""
    original, calls = getattr(RunState, method), []

    def dying(self: RunState, *args: Any) -> None:
        calls.append(args)
        if len(calls) == times and not after:
            raise Killed
        original(self, *args)
        if len(calls) == times:
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(RunState, method, dying)
        yield
