"""Hands cases to a `server`, one at a time; or runs them as processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from components.files import read_json
from tests.code_graph import ROOT
from tests.hostile.cases import SECONDS, Case, End

MODULES = {
    "evenkeel": ("-c", "from flows.cli import main; main()"),
    "components": ("-m", "components"),
}
"""How Python starts a program."""

LOADING = 60.0
"""Seconds in which a process of its own loads its code, torch included, on a busy machine."""
DIGESTS = "digests.json"
"""In the project: its candidates by name."""


def private(home: Path) -> dict[str, str]:
    """A home of its own."""
    return {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "PREFECT_HOME": str(home / "prefect")}


def environment(home: Path) -> dict[str, str]:
    """Of every command: a home without settings, no way out of the machine, and this code."""
    unreachable = {"KUBECONFIG": str(home / "no-cluster"), "GIT_CEILING_DIRECTORIES": tempfile.gettempdir()}
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **private(home), **unreachable}


class Server:
    """The process that forks for each case. It is started by the first one."""

    def __init__(self, home: Path) -> None:
        self._home, self._numbers = home, count()
        self._process: subprocess.Popen[str] | None = None

    def end_of(self, case: Case, folder: Path) -> End:
        """Make the input of a case in an empty folder, and run its command there."""
        said = self._home / "said"
        arguments, shown = prepared(case, folder)
        answer = self._ask(
            {
                "program": case.program,
                "arguments": arguments,
                "folder": str(folder),
                "environment": private(self._home / f"home-{next(self._numbers)}"),
                "loads": list(case.loads),
                "said": str(said),
                "seconds": SECONDS,
            }
        )
        return End(said=said.read_text(encoding="utf-8", errors="replace"), case=case, shown=shown, **answer)

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


def prepared(case: Case, folder: Path) -> tuple[list[str], object]:
    """Make the files of a case; its arguments with the names of folder and candidates in them, and its input."""
    shown = case.make(folder) if case.make is not None else None
    digests = folder.parent / DIGESTS
    names = {"": str(folder), **(read_json(digests) if digests.exists() else {})}
    arguments = list(case.arguments)
    for name, value in names.items():
        arguments = [argument.replace(f"{{{name}}}", value) for argument in arguments]
    return arguments, shown or case.shown


MEASURED = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[2:])
_, status, used = os.wait4(process.pid, 0)
with open(sys.argv[1], "w") as file:
    json.dump([os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024], file)
"""
"""Starts a command and writes its exit code and peak memory. Linux counts the peak of a process that starts another one
towards the other one's, and that of the tests may be gigabytes; this process is small."""


def process_of(case: Case, folder: Path, home: Path) -> End:
    """The same as a process of its own, as a person starts it. Its memory is that of the whole process."""
    arguments, shown = prepared(case, folder)
    measured, began = home / "measured.json", time.monotonic()
    process = subprocess.run(
        [sys.executable, "-S", "-c", MEASURED, str(measured), sys.executable, *MODULES[case.program], *arguments],
        cwd=folder,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=True,
    )
    seconds = time.monotonic() - began
    code, memory = json.loads(measured.read_text(encoding="utf-8"))
    return End(code, seconds, memory, process.stdout, seconds > LOADING + SECONDS, case, shown)
