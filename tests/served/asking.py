"""Candidates without a training, and the flow run that asks about one, as a person uses it through the API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from components.errors import EXIT_NO_CANDIDATE
from components.files import write_text
from components.registry import DirectoryStore, PromotionRecord, Store, read_history
from flows.host.git import IDENTITY, git
from tests.proposals import propose_in
from tests.served.service import Service, evenkeel, wait_for

POLICY = "configs/promotion/policy.yaml"
KEYS = ".state/test-keys"
"""Of the people who sign."""
BUSY = 120.0
"""Seconds that a machine with much else to do may need for one execution of the flow."""


def store_of(project: Path) -> Store:
    return DirectoryStore(project / "registry")


def make_candidate(project: Path, value: float, doubt: str = "") -> str:
    """Propose a checkpoint that ``value`` distinguishes from others; its digest.

    Args:
        doubt: why the gate leaves it to a person; it lets the candidate pass otherwise.
    """
    return propose_in(project, value, doubt=doubt).digest


def decisions(project: Path) -> list[PromotionRecord]:
    return read_history(store_of(project)).records


def champion(project: Path) -> str | None:
    found = read_history(store_of(project)).champion
    return found.digest if found else None


@contextmanager
def policy(project: Path, *people: str, **settings: Any) -> Iterator[None]:
    """Another policy for a while, which these people adopt, and then the one before again.

    Args:
        people: as many as both policies need; those who have a key in `KEYS` sign. Without any, neither is adopted.
    """
    path = project / POLICY
    before = path.read_text(encoding="utf-8")
    _commit(project, path, yaml.safe_dump({**yaml.safe_load(before), **settings}))
    _adopt(project, people)
    try:
        yield
    finally:
        _commit(project, path, before)
        _adopt(project, people)


def _adopt(project: Path, people: Sequence[str]) -> None:
    for name in people:
        key = project / KEYS / f"{name}.pem"
        signed = ["--key", str(key)] if key.exists() else []
        done = evenkeel(project, "adopt-policy", "--by", name, *signed)
        assert done.returncode == (0 if name == people[-1] else EXIT_NO_CANDIDATE), done.stdout + done.stderr


def _commit(project: Path, path: Path, text: str) -> None:
    write_text(path, text)
    git(project, "commit", "--quiet", "--message=policy", "--", str(path), extra=IDENTITY)


class Question:
    """The flow run ``id`` of the deployment `promote`."""

    def __init__(self, service: Service, id: str) -> None:
        self.service, self.id = service, id

    @classmethod
    def about(cls, service: Service, digest: str) -> Question:
        """Start it as a person does."""
        return cls(service, service.trigger("promote", digest=digest))

    @property
    def asked(self) -> int:
        """How often it was suspended so far."""
        return self.service.states(self.id).count("Suspended")

    def suspended(self, times: int = 1) -> Question:
        """Wait until it is, for the ``times``-th time, and until its form and the text above the form are stored."""

        def there() -> bool:
            if self.service.flow_run(self.id)["state_name"] != "Suspended" or self.asked != times:
                return False
            return all(self._input(part) is not None for part in ("schema", "description"))

        wait_for(there, BUSY, lambda: f"{self.service.states(self.id)}\n{self.service.logs(self.id)}")
        return self

    def ended(self, state: str) -> dict[str, Any]:
        """Wait until it ends, in this state."""
        run = self.service.wait(self.id, seconds=BUSY)
        assert run["state_name"] == state, f"{run['state']}\n{self.service.logs(self.id)}"
        return run

    def _input(self, part: str) -> Any:
        keyset = self.service.flow_run(self.id)["state"]["state_details"]["run_input_keyset"]
        found = self.service.post(f"/flow_runs/{self.id}/input/filter", prefix=keyset[part], limit=1)
        return found[0]["value"] if found else None

    @property
    def form(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._input("schema"))
        return found

    @property
    def shown(self) -> str:
        """The Markdown above the form."""
        return str(json.loads(self._input("description")))

    def answer(self, **values: Any) -> dict[str, Any]:
        """Submit the form; what the server says."""
        found: dict[str, Any] = self.service.post(f"/flow_runs/{self.id}/resume", run_input=values)
        return found

    def go_on(self) -> str:
        """Let it go on without an answer, in the one way that the server allows; the server's word."""
        state = {"type": "SCHEDULED", "name": "Resuming"}
        return str(self.service.post(f"/flow_runs/{self.id}/set_state", state=state)["status"])


def announce(service: Service, digest: str, registry: str = "registry") -> None:
    """The event of a new candidate."""
    event = {
        "occurred": datetime.now(UTC).isoformat(),
        "event": "checkpoint.candidate",
        "resource": {"prefect.resource.id": f"evenkeel.candidate.{digest}"},
        "payload": {"run": "demo-1", "digest": digest, "registry": registry},
        "id": str(uuid4()),
    }
    service._http.post(f"{service.api_url}/events", json=[event]).raise_for_status()


def questions(service: Service, digest: str) -> list[Question]:
    """Every flow run about a candidate, the oldest first."""
    found = [run for run in service.flow_runs("promote") if run["parameters"]["digest"] == digest]
    return [Question(service, run["id"]) for run in sorted(found, key=lambda run: run["created"])]
