"""Hands cases to a `server`, one at a time; or runs them as processes of their own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.code_graph import ROOT
from tests.hostile.cases import SECONDS, Case, End

MODULES = {
    "evenkeel": ("-c", "from flows.cli import main; main()"),
    "components": ("-m", "components"),
}
"""How Python starts a program."""


def environment(home: Path) -> dict[str, str]:
    """Of every command: a home without settings, no way out of the machine, and this code."""
    private = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "PREFECT_HOME": str(home / "prefect")}
    unreachable = {"KUBECONFIG": str(home / "no-cluster"), "GIT_CEILING_DIRECTORIES": tempfile.gettempdir()}
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **private, **unreachable}


class Server:
    """The process that forks for each case. It is started by the first one."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._process: subprocess.Popen[str] | None = None

    def end_of(self, case: Case, folder: Path, **variables: str) -> End:
        """Make the input of a case in an empty folder, and run its command there."""
        said = self._home / "said"
        answer = self._ask(
            {
                "program": case.program,
                "arguments": prepared(case, folder),
                "folder": str(folder),
                "environment": variables,
                "loads": list(case.loads),
                "said": str(said),
                "seconds": SECONDS,
            }
        )
        return End(said=said.read_text(encoding="utf-8", errors="replace"), **answer)

    def _ask(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(wanted) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, "the server of cases has ended"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.server"],
            cwd=ROOT,
            env=environment(self._home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self._process

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.communicate()


@contextmanager
def served(home: Path) -> Iterator[Server]:
    """A server, until the end of the block."""
    home.mkdir(parents=True, exist_ok=True)
    server = Server(home)
    try:
        yield server
    finally:
        server.close()


def prepared(case: Case, folder: Path) -> list[str]:
    """Make the files of a case; its arguments with the folder's name in them."""
    if case.make is not None:
        case.make(folder)
    return [argument.replace("{}", str(folder)) for argument in case.arguments]


def process_of(case: Case, folder: Path, home: Path) -> End:
    """The same as a process of its own, as a person starts it. Its memory is that of the whole process."""
    command = [sys.executable, *MODULES[case.program], *prepared(case, folder)]
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=2 * SECONDS,
        text=True,
        errors="replace",
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return End(done.returncode, time.monotonic() - began, max(0, after - before) * 1024, done.stdout)
