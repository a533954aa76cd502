"""Prefect's worker for flow runs that are processes, with a process that stands by for the next one.

``python -m flows.serving.worker POOL NAME``, in the project's folder. Prefect starts an interpreter for every flow run,
which loads Prefect and the flows: two seconds on a fast machine, four on a slow one. Here a process that has loaded
them waits while no flow run is under way (`flows.serving.flow_run`), and the next flow run gets it. A flow run without
it, because another one is under way, or because it has died, is started as Prefect does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process, TaskStatus
from prefect.runner import _starter_engine as starter
from prefect.settings import get_current_settings
from prefect.utilities.processutils import consume_process_output, setup_signal_handlers_worker
from prefect.utilities.processutils import run_process as start_process
from prefect.workers.process import ProcessWorker

from flows.serving.flow_run import COMMAND, FLOW_RUN, NONE_YET


class Standby:
    """Starts the process that stands by, and gives it to a flow run, which starts in the folder ``project``."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._process: Process | None = None
        self._under_way = 0

    @property
    def pid(self) -> int | None:
        """The id of the process; None where there is none."""
        return None if self._process is None or self._process.returncode is not None else self._process.pid

    async def start(self) -> None:
        """Start the process, unless there is one or a flow run is under way, which needs the processor."""
        if self._under_way or self.pid is not None:
            return
        settings = get_current_settings().to_environment_variables(exclude_unset=True)  # as for a flow run
        self._process = await anyio.open_process(
            [*COMMAND, "--standby"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._project,
            env={**os.environ, **settings, FLOW_RUN: NONE_YET},
        )

    async def end(self) -> None:
        """End the process."""
        if self._process is not None:
            _kill(self._process)
            await self._process.aclose()

    async def run_process(
        self,
        command: list[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stream_output: bool,
        task_status: TaskStatus[Any],
        task_status_handler: Callable[[Process], Any],
        **options: Any,
    ) -> Process:
        """As Prefect's function of this name: returns when the process has ended."""
        self._under_way += 1
        try:
            fits = command == COMMAND and cwd == self._project and stream_output and not options
            process = await self._take(env) if fits else None
            if process is None:
                options |= {"stream_output": stream_output, "task_status": task_status}
                options["task_status_handler"] = task_status_handler
                process = await start_process(command, env=env, cwd=cwd, **options)
            else:
                await _follow(process, task_status, task_status_handler)
        finally:
            self._under_way -= 1
        try:
            await self.start()
        except OSError as error:  # the flow run that has ended is not to fail for that
            print(f"no process stands by for the next flow run: {error}", file=sys.stderr)
        return process

    async def _take(self, env: Mapping[str, str]) -> Process | None:
        """The process that stands by, once it has the environment of a flow run; None where there is none."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return None
        try:
            await process.stdin.send(json.dumps(dict(env)).encode() + b"\n")
            await process.stdin.aclose()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):  # it has died
            await process.aclose()
            return None
        return process


async def _follow(process: Process, status: TaskStatus[Any], handler: Callable[[Process], Any]) -> None:
    """Pass on what a process prints until it ends; it is killed where this is cancelled."""
    async with process:
        try:
            status.started(handler(process))
            try:
                await consume_process_output(process, sys.stdout, sys.stderr)
            except Exception:  # such as a full disk: the flow run goes on, and nothing it prints may block it
                await consume_process_output(process)
                await process.wait()
                raise
            await process.wait()
        except BaseException:
            _kill(process)
            raise


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended
        process.kill()


async def work(pool: str, name: str) -> None:
    """Take flow runs from the work pool until a signal, as ``prefect worker start`` does."""
    setup_signal_handlers_worker(os.getpid(), "the process worker", print)
    standby = Standby(Path.cwd())
    patched: Any = starter  # where Prefect says that it may be replaced
    patched.run_process = standby.run_process
    worker = ProcessWorker(
        work_pool_name=pool,
        name=name,
        create_pool_if_not_found=False,
        heartbeat_interval_seconds=int(get_current_settings().worker.heartbeat_seconds),
    )
    await standby.start()
    try:
        await worker.start()
    finally:
        await standby.end()


if __name__ == "__main__":
    with contextlib.suppress(asyncio.CancelledError, KeyboardInterrupt):
        asyncio.run(work(*sys.argv[1:]))
