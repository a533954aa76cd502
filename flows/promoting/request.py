"""An approval request, stored in the registry: an approval applies to what was shown, whatever changes afterwards.

`requests/<digest>/<sha256>.json`, written once and named after its content. The suspended run knows it by the key of
its suspension alone, so that nothing has to survive in a process.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

from components.config.promotion import Action
from components.errors import InputError
from components.files import dump_json, sha256_bytes
from components.registry import Store
from components.registry.statements import Question

SCHEMA = 1
PREFIX = "requests/"
KEY = re.compile(r"promote-(?P<digest>[0-9a-f]{16})-(?P<request>[0-9a-f]{64})-(?P<round>[0-9]+)")


@dataclass(frozen=True, slots=True)
class Request:
    """``evidence`` and ``policy`` are digests, ``base`` is the number of the record that the champion stood on (0:
    none), ``gate`` is the sha256 of the gate's result, ``approved`` the number of approvals that counted, ``shown`` the
    Markdown above the form, and ``flow_run`` the run that sent the request.
    """

    digest: str
    evidence: str | None
    policy: str
    base: int
    gate: str | None
    approved: int
    shown: str
    flow_run: str
    schema: int = SCHEMA

    def to_bytes(self) -> bytes:
        return dump_json(asdict(self)).encode()

    @property
    def sha256(self) -> str:
        return sha256_bytes(self.to_bytes())

    @property
    def identity(self) -> tuple[object, ...]:
        """What distinguishes requests; neither the wording nor the round."""
        return self.digest, self.evidence, self.policy, self.base, self.gate, self.approved

    def question(self, action: Action, registry: str) -> Question:
        """What an answer is about, in the registry of this identity, where the request is kept."""
        gate = self.gate if action == "promote" else None
        return Question(action, self.digest, self.evidence, self.policy, self.base, registry, gate)

    def key(self, round: int) -> str:
        """Of the suspension. Prefect takes every key once in a run, so each ``round`` of asking has another."""
        return f"promote-{self.digest[:16]}-{self.sha256}-{round}"


def store_request(store: Store, request: Request) -> None:
    """Store the request before it is sent."""
    store.put_if_absent(_name(request.digest, request.sha256), request.to_bytes())


def load_request(store: Store, digest: str, sha256: str) -> Request:
    """The stored request about this candidate.

    Raises:
        InputError: it is not there, was changed, or is about another candidate.
    """
    name = _name(digest, sha256)
    stored = store.get(name)
    if stored is None or sha256_bytes(stored[0]) != sha256:
        what = "what was shown to the approver is no longer in the registry as it was"
        raise InputError(what, where=name, how="nothing was decided: approve again, or restore the registry")
    try:
        request = Request(**json.loads(stored[0]))
    except (ValueError, TypeError) as error:
        raise InputError(f"not a request: {error}", where=name, how="approve again") from error
    if request.digest != digest or request.schema != SCHEMA:
        raise InputError("a request about another candidate", where=name, how="approve again")
    return request


def _name(digest: str, sha256: str) -> str:
    return f"{PREFIX}{digest}/{sha256}.json"
