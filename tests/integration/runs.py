"""Micro trainings in processes of their own, which can be stopped with SIGTERM, and killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from components.config import dump
from components.files import manifest
from components.layout import Layout
from tests.code_graph import ROOT

sys.path.insert(0, str(ROOT / "tests" / "unit"))
from factories import settings, workspace

JUDGE = f"""
import sys
if "components" in sys.orig_argv:
    sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests" / "unit")!r}]
    from factories import Judge, parity
    from components.training import assembly
    assembly.Scorer = lambda *_: Judge(parity)
"""
"""A random policy earns no other reward, and learns nothing without one."""


def prepared(root: Path, **sections: Any) -> Layout:
    """A workspace from before stage `train`, its settings in ``settings.yaml``."""
    layout = workspace(root)
    (root / "settings.yaml").write_text(dump(settings(**sections)))
    (root / "judge").mkdir()
    (root / "judge" / "sitecustomize.py").write_text(JUDGE)
    return layout


def start(root: Path, module: Sequence[str], **environment: str) -> subprocess.Popen[bytes]:
    """A module as a process in a session of its own, its output in ``output.txt``."""
    with (root / "output.txt").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", *module],
            cwd=root,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join((str(root / "judge"), str(ROOT))),
                "EVENKEEL_TERMINATION_LOG": str(root / "last-words.txt"),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def trained(root: Path) -> dict[str, str]:
    """Digests of what the stage wrote."""
    return manifest(root / "out" / "train")


def steps(root: Path) -> list[int]:
    """Of the checkpoints that there are."""
    return sorted(int(path.name[5:]) for path in (root / ".state" / "train").glob("step-*"))


def rows(root: Path) -> int:
    """Steps that are on record."""
    path = root / ".state" / "train" / "records.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def when(reached: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float = 240) -> None:
    """Wait for it; the process must live until then."""
    until = time.monotonic() + seconds
    while not reached():
        assert process.poll() is None, f"it ended with {process.returncode}"
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)


def kill(process: subprocess.Popen[bytes]) -> None:
    """As the end of a container: nothing of it lives on."""
    try:
        below = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        below = []
    process.kill()
    process.wait()
    for one in below:
        with suppress(psutil.NoSuchProcess):
            one.kill()
