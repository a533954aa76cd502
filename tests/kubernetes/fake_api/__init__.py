"""An API server for tests: as much of Kubernetes as Evenkeel asks for, and faults when they are wanted.

- `server` — `FakeApi`: objects, lists in pages, watches, logs, access reviews; it can be stopped and started again
- `faults` — what happens to the next requests
- `answers` — Statuses as a real API server (1.36) words them
- `access` — kubeconfigs that lead to it
"""

from tests.kubernetes.fake_api.access import kubeconfig
from tests.kubernetes.fake_api.faults import Fault
from tests.kubernetes.fake_api.server import FakeApi

__all__ = ["FakeApi", "Fault", "kubeconfig"]
