"""The process that stands by for the next flow run, and the worker that gives it away."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from anyio.abc import Process

from flows.host.processes import mark_of
from flows.serving import worker
from flows.serving.flow_run import FLOW_RUN, NONE_YET, START_WITHIN
from flows.serving.worker import Standby
from tests.code_graph import ROOT

ID = "0f6b1d4e-7f5e-4f0a-9b0e-2f4f3c1d2a5b"
BECOMES = f"""\
import os, sys
from flows.serving import flow_run
flow_run.NEEDED = ("needed",)
flow_run.COMMAND[:] = [sys.executable, "-c", "print('loaded again')"]
sys.stdout.write("began\\n"), sys.stdout.flush()
flow_run.become_flow_run()
print("stood by", os.getpid(), os.environ["{FLOW_RUN}"], os.environ.get("LATE", ""), flush=True)
sys.stdin.read()
"""


CHANGES = """\
import os, sys

class Input:
    def readline(self):
        CHANGE
        return sys.__stdin__.readline()

sys.stdin = Input()
"""
"""A module whose file changes while the process that has loaded it waits for its first line."""


@contextmanager
def standing_by(folder: Path, needed: str = "") -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A process that has loaded a module with the text ``needed``, and its environment."""
    (folder / "needed.py").write_text(needed, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]), "PYTHONDONTWRITEBYTECODE": "1"}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", BECOMES], env={**env, FLOW_RUN: NONE_YET}, **pipes) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "began\n"
        try:
            yield process, env
        finally:
            process.stdin.close()


def given(process: subprocess.Popen[str], env: dict[str, str]) -> str:
    """The line that a process prints when it has got an environment."""
    assert process.stdout is not None and process.stdin is not None
    process.stdin.write(json.dumps(env) + "\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def test_the_process_becomes_that_of_the_flow_run_for_others_too(tmp_path: Path) -> None:
    with standing_by(tmp_path) as (process, env):
        own = {FLOW_RUN: ID, "PREFECT__DEPLOYMENT_NAME": "nightly", START_WITHIN: "60"}
        assert given(process, {**env, **own}) == f"stood by {process.pid} {ID}"
        assert mark_of(psutil.Process(process.pid), FLOW_RUN) == ID


@pytest.mark.parametrize(
    ("needed", "variables"),
    [
        *(("", {variable: "changed"}) for variable in ("LATE", "PREFECT_API_URL", "PATH")),
        ("import os, time; time.sleep(0.05); os.utime(__file__)", {}),  # while it is loaded
        (CHANGES.replace("CHANGE", "os.utime(__file__, (1, 1))"), {}),
        (CHANGES.replace("CHANGE", "os.unlink(__file__)"), {}),
    ],
)
def test_another_environment_or_another_file_than_it_loaded_replaces_it(
    tmp_path: Path, needed: str, variables: dict[str, str]
) -> None:
    with standing_by(tmp_path, needed) as (process, env):
        assert given(process, {**env, FLOW_RUN: ID, **variables}) == "loaded again"


def test_it_ends_with_its_worker(tmp_path: Path) -> None:
    with standing_by(tmp_path) as (process, _):
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


STANDS_BY = """\
import json, os, sys
if "--standby" in sys.argv:
    os.environ = json.loads(sys.stdin.readline())
print("standby" if "--standby" in sys.argv else "started", os.environ["MARK"], flush=True)
if "FOR_EVER" in os.environ:
    sys.stdin.read(), __import__("time").sleep(60)
"""


class Started:
    """Prefect's task status, which gets the process once it runs."""

    def __init__(self) -> None:
        self.processes: list[Process] = []

    def started(self, process: Process) -> None:
        self.processes.append(process)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A flow run that prints how it was started."""
    (tmp_path / "run.py").write_text(STANDS_BY, encoding="utf-8")
    found = [sys.executable, "run.py"]
    monkeypatch.setattr(worker, "COMMAND", found)
    return found


async def run(standby: Standby, command: list[str], folder: Path, status: Started, **variables: str) -> int:
    process = await standby.run_process(
        command,
        env={**os.environ, **variables},
        cwd=folder,
        stream_output=True,
        task_status=status,  # type: ignore[arg-type]
        task_status_handler=lambda process: process,
    )
    assert process.returncode is not None
    return process.returncode


def test_a_flow_run_gets_the_process_that_stands_by_and_after_it_another_one_does(command, tmp_path, capfd) -> None:
    async def runs() -> None:
        standby, status = Standby(tmp_path), Started()
        for number in range(3):
            assert await run(standby, command, tmp_path, status, MARK=str(number)) == 0
        assert len({process.pid for process in status.processes}) == 3
        await standby.end()

    asyncio.run(runs())
    assert capfd.readouterr().out.split("\n")[:3] == ["started 0", "standby 1", "standby 2"]


def test_one_that_has_died_and_one_that_does_not_fit_are_not_used(command, tmp_path, capfd) -> None:
    async def runs() -> None:
        standby, status = Standby(tmp_path), Started()
        await standby.start()
        psutil.Process(standby.pid).kill()
        while standby.pid is not None:
            await asyncio.sleep(0.01)
        await run(standby, command, tmp_path, status, MARK="dead")
        await run(standby, [*command, "-v"], tmp_path, status, MARK="command")
        (tmp_path / "below").mkdir()
        (tmp_path / "below" / "run.py").write_text(STANDS_BY, encoding="utf-8")
        await run(standby, command, tmp_path / "below", status, MARK="folder")
        await run(standby, command, tmp_path, status, MARK="fits")
        await standby.end()

    asyncio.run(runs())
    said = [line for line in capfd.readouterr().out.split("\n") if line]
    assert said == ["started dead", "started command", "started folder", "standby fits"]


def test_a_log_that_cannot_be_written_does_not_end_the_flow_run(command, tmp_path, monkeypatch) -> None:
    def full(_: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def runs() -> None:
        standby, status = Standby(tmp_path), Started()
        await standby.start()
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(write=full, flush=lambda: None))
        with pytest.raises(ExceptionGroup) as raised:
            await run(standby, command, tmp_path, status, MARK="1")
        assert raised.value.subgroup(OSError)
        assert status.processes[0].returncode == 0
        await standby.end()

    asyncio.run(runs())


def test_a_flow_run_does_not_fail_because_no_other_process_can_be_started(
    command, tmp_path, monkeypatch, capfd
) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    async def runs() -> None:
        standby, status = Standby(tmp_path), Started()
        await standby.start()
        monkeypatch.setattr(worker.anyio, "open_process", fails)
        assert await run(standby, command, tmp_path, status, MARK="1") == 0
        assert standby.pid is None

    asyncio.run(runs())
    assert "no process stands by for the next flow run" in capfd.readouterr().err


def test_one_is_started_only_when_no_flow_run_is_under_way_and_a_cancelled_one_is_killed(command, tmp_path) -> None:
    async def runs() -> None:
        standby, status = Standby(tmp_path), Started()
        await standby.start()
        first = asyncio.create_task(run(standby, command, tmp_path, status, MARK="1", FOR_EVER="1"))
        while not status.processes:
            await asyncio.sleep(0.01)
        await run(standby, command, tmp_path, status, MARK="2")
        assert standby.pid is None
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert status.processes[0].returncode is not None

    asyncio.run(runs())
