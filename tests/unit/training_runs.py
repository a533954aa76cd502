"""Micro runs of the real loop, and how to kill them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from factories import Judge, parity, settings, workspace

from components.config import Settings
from components.data.prompts import read_prompts
from components.files import manifest, read_jsonl
from components.layout import Layout
from components.scheduling import ranked_clusters
from components.stages import train as stage
from components.training import assembly
from components.training.loop import train as loop
from components.training.run import RunState
from components.types import StepRecord


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


@pytest.fixture(autouse=True, scope="module")
def judged_by_parity() -> Iterator[None]:
    """Import it, and completions are right by chance: a random policy earns no other reward."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly, "Scorer", lambda *_: Judge(parity))
        yield


def train(root: Path, chosen: Settings | None = None, **workspace_options: Any) -> Layout:
    """The stage, in a new workspace or in the one that is there."""
    layout = Layout(root) if (root / "out").exists() else workspace(root, **workspace_options)
    stage.run(chosen or settings(), layout)
    return layout


def watched(root: Path, chosen: Settings, **wrappers: Any) -> tuple[RunState, list[StepRecord]]:
    """The loop alone, with a fault between it and a real part; its state and the records of its steps."""
    layout, found = workspace(root), []
    clusters = ranked_clusters(read_prompts(layout.split("train")), layout)
    with assembly.assembled(chosen, layout, clusters, **wrappers) as parts:
        loop(parts, found.append)
    return parts.state, found


def records(layout: Layout) -> list[dict[str, Any]]:
    return list(read_jsonl(layout.records))


def outputs(layout: Layout) -> dict[str, str]:
    """Digest of every file that the stage writes."""
    files = manifest(layout.out)
    return {name: files[name] for name in files if name.startswith(("train", "curves"))}


EVERY_STEP = {"checkpoint_every": 1, "checkpoints": {"keep_last": 100}}
"""Settings of section `train` under which the checkpoint of every step stays."""


def assert_goes_on_from(steps: Iterable[int], folder: Path, chosen: Settings) -> Layout:
    """From the checkpoints of these steps a run goes on to the bytes of one that never stopped, which is returned."""
    whole = train(folder / "whole", chosen)
    for step in steps:
        again = workspace(folder / f"from-{step}")
        shutil.copytree(whole.state, again.state)
        for later in (again.state / "train").glob("step-*"):
            if int(later.name.removeprefix("step-")) > step:
                shutil.rmtree(later)
        assert outputs(train(again.root, chosen)) == outputs(whole), f"from step {step}"
    return whole


@contextmanager
def killed(method: str, times: int, *, after: bool = True) -> Iterator[None]:
    """Die in the n-th call of a method of the run's state, before or after it has done its work."""
    original, calls = getattr(RunState, method), []

    def dying(self: RunState, *args: Any) -> None:
        calls.append(args)
        if len(calls) == times and not after:
            raise Killed
        original(self, *args)
        if len(calls) == times:
            raise Killed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(RunState, method, dying)
        yield
