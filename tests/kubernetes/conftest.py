"""A fake API server, and the client that is tested connected to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from components.launch.kubernetes.api import Cluster, Patience
from tests.kubernetes.fake_api import FakeApi, kubeconfig

QUICK = Patience(attempts=6, deadline=20.0, timeout=3.0, first_pause=0.01, longest_pause=0.05)
"""What a server on the same machine deserves."""


@pytest.fixture(autouse=True)
def _nobodys_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test may find the cluster of whoever runs it, nor a proxy."""
    for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi().running() as server:
        yield server


@pytest.fixture
def config(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kubeconfig that leads to it."""
    path = kubeconfig(tmp_path / "kubeconfig", api.url)
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


@pytest.fixture
def cluster(api: FakeApi, config: Path) -> Cluster:
    found = Cluster.connect("evenkeel", patience=QUICK)
    api.seen.clear()
    api.requests.clear()
    return found
