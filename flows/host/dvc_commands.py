"""DVC's commands in one process, so that a run loads DVC once and not for every stage.

``python -m flows.host.dvc_commands DESCRIPTOR`` sends the line ``loaded`` on the socket once it can take commands. Then
it receives a line of JSON a command, ``{"arguments": [...], "folder": PATH, "env": {...}, "log": PATH}``, runs it in
that folder with its output appended to the log, and answers with a line that holds the exit code. It ends when the
other end, `flows.host.dvc_process`, is closed.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence

from dvc.cli import main
from dvc.cli.parser import get_main_parser

from flows.host.dvc_yaml import install

LATER = ("dvc.repo.reproduce", "dvc.repo.plots", "dvc.repo.stage", "dvc.cachemgr", "dvc.rwlock", "scmrepo.git")
"""What DVC imports at its first command."""


def load() -> None:
    """Import that now, while the run does something else."""
    get_main_parser()
    for module in LATER:
        importlib.import_module(module)


def serve(requests: socket.socket) -> None:
    """Run commands until the other end is closed."""
    with requests.makefile("rb") as lines:
        for line in lines:
            request = json.loads(line)
            os.chdir(request["folder"])
            _redirect(request["log"])
            requests.sendall(f"{_run(request['arguments'], request['env'])}\n".encode())


def _redirect(log: str) -> None:
    number = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    for output in (sys.stdout, sys.stderr):
        output.flush()
        os.dup2(number, output.fileno())
    os.close(number)


def _run(arguments: Sequence[str], env: Mapping[str, str]) -> int:
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["dvc", *arguments]  # DVC notes it in its locks
    try:
        return int(main(arguments))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    gc.set_threshold(100_000)  # loading DVC makes much that stays, as Prefect does: see `flows.serving.flow_run`
    install()
    load()
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        requests.set_inheritable(False)
        requests.sendall(b"loaded\n")
        serve(requests)
