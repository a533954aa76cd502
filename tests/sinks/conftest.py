"""Real trackers, on this machine alone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))  # sink_runs

NEEDED = {"tensorboard": "tensorboard", "mlflow": "mlflow", "wandb": "wandb", "trackio": "trackio"}


def needs(package: str) -> None:
    """Skip where a tracker's package is not installed."""
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed: make test-sinks")


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a tracking server with a database and artifacts in a folder of its own."""
    needs("mlflow")
    if find_spec("mlflow.server") is None or find_spec("sqlalchemy") is None or find_spec("graphene") is None:
        pytest.skip("only MLflow's client is installed, without its server: make test-sinks")
    folder = tmp_path_factory.mktemp("mlflow")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += [
        "--backend-store-uri",
        f"sqlite:///{folder}/mlflow.db",
        "--artifacts-destination",
        str(folder / "files"),
    ]
    quiet = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, env=quiet, stdout=log, stderr=log, start_new_session=True)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/health", server, folder / "server.log")
        yield address
    finally:
        os.killpg(server.pid, 15)
        server.wait(30)


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"no server: {log.read_text()[-2000:]}")
