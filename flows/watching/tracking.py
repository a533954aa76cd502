"""A run in its trackers: a process follows it (`components.sinks`). The run waits for it a moment at its end."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from prefect import get_run_logger

from components.config import Settings
from components.files import os_errors
from components.layout import Layout
from components.sinks import chosen_sinks

SECONDS, GRACE = 20.0, 5.0
"""That sending the rest may take when the run is over; and that the process may take beyond to end."""
Say = Callable[[str], object]


@contextmanager
def tracked(settings: Settings, root: Path) -> Iterator[None]:
    """Send the run in the workspace ``root`` to its sinks while the block works. Call it inside a flow run."""
    names = [name for name, _ in chosen_sinks(settings)]
    get_run_logger().info("sinks: %s", ", ".join(names) or "none")
    if not names:
        yield
        return
    say = get_run_logger().warning
    process = start(root, SECONDS)
    listening = _listen(process, say)
    waits = 0.0
    try:
        yield
        waits = SECONDS
    finally:
        end(process, listening, waits, root.name, say)


def track(root: Path, say: Say, seconds: float) -> bool:
    """Send what is missing of a run that is over; returns whether everything was sent in time."""
    process = start(root, seconds)
    return end(process, _listen(process, say), seconds, root.name, say)


def start(root: Path, seconds: float) -> subprocess.Popen[str]:
    """The process; it ends when its standard input does, and so with this process, however that ends."""
    log = Layout(root).logs / "sinks.log"
    with os_errors("write", log):
        log.parent.mkdir(parents=True, exist_ok=True)
        output = log.open("ab")
    with output:
        return subprocess.Popen(
            [sys.executable, "-m", "components.sinks", str(root), str(seconds)],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            start_new_session=True,  # Ctrl-C is for the run, and the rest is sent after it
        )


def end(process: subprocess.Popen[str], listening: threading.Thread, seconds: float, run: str, say: Say) -> bool:
    """Let it send the rest for so long; returns whether it did. Without time it goes on for a moment by itself."""
    assert process.stdin is not None
    process.stdin.close()
    code: int | None = None
    if seconds:
        try:
            code = process.wait(seconds + GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
    if code:
        say(f"not everything was shown in the trackers; `evenkeel track {run}` sends the rest (logs/sinks.log)")
    listening.join(1.0)
    return code == 0


def _listen(process: subprocess.Popen[str], say: Say) -> threading.Thread:
    """Pass on what it says, as the present flow run."""

    def run() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            say(line.rstrip())

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), name="sinks", daemon=True)
    thread.start()
    return thread
