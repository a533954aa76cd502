"""What the tests of decisions are made of: a store with candidates, policies, approvers with keys, and a clock."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from components.config.promotion import Action, Policy, read_policy
from components.errors import InputError
from components.files import dump_json, sha256_bytes, sha256_tree
from components.registry import (
    Approval,
    Candidate,
    PromotionRecord,
    Question,
    Store,
    identify,
    promote,
    question,
    read_history,
    reject,
    rejection_question,
    rollback,
    rollback_question,
    sign,
    state,
    store_approval,
)
from components.registry.base import Conflict, check_key
from components.registry.identity import KEY
from components.registry.keys import public_text
from components.registry.rollback import target
from components.registry.signing import sign as sign_checkpoint
from components.types import GateCheck, GateResult, Judgement
from tests.fake_line.stages.work import checkpoint
from tests.proposals import key_in, policy_of

TREES = Path(tempfile.mkdtemp())
"""Where the trees of every `MemoryStore` lie."""


class MemoryStore(Store):
    """A store for what has nothing to do with disks. A tree is there while its digest is among ``trees``. All are one
    registry."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {KEY: dump_json({"identity": REGISTRY}).encode()}
        self.trees: set[str] = set()
        self._lock = threading.Lock()

    def put_if_absent(self, key: str, data: bytes) -> bool:
        with self._lock:
            absent = self.objects.setdefault(check_key(key), data) is data
        return absent

    def get(self, key: str) -> tuple[bytes, str] | None:
        data = self.objects.get(check_key(key))
        return None if data is None else (data, sha256_bytes(data))

    def compare_and_swap(self, key: str, data: bytes, expected: str | None) -> str:
        with self._lock:
            current = self.get(key)
            if (current[1] if current else None) != expected:
                raise Conflict("lost")
            self.objects[key] = data
        return sha256_bytes(data)

    def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in list(self.objects) if key.startswith(prefix))

    def put_tree(self, directory: Path, files: Mapping[str, str] | None = None) -> str:
        digest = sha256_tree(directory)
        shutil.copytree(directory, TREES / digest, dirs_exist_ok=True)
        self.trees.add(digest)
        return digest

    def has_tree(self, digest: str) -> bool:
        return digest in self.trees

    def tree(self, digest: str) -> Path:
        if digest not in self.trees:
            raise InputError("no such checkpoint in the registry", where=digest)
        return TREES / digest


REGISTRY = "0123456789abcdef" * 2
"""Identity of the stores in memory."""
SIGNING = Path(tempfile.mkdtemp())
"""Where the key is that signs checkpoints."""
NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)
STARTER = "lin@example.org"


def at(time: datetime = NOON, **later: float) -> Any:
    """A clock with a fixed time, noon by default."""
    return lambda: time + timedelta(**later)


def propose(store: Store, value: float = 0.0, result: GateResult = "pass", **fields: Any) -> Candidate:
    """A stored candidate; ``value`` makes its checkpoint differ."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint(Path(folder) / "c", value)
        digest = store.put_tree(Path(folder) / "c")
        sign_checkpoint(store, Path(folder) / "c", digest, key_in(SIGNING))
    gate = {"result": result, "checks": [GateCheck("a", result, "").to_dict()], "policy_sha256": "c" * 64}
    candidate = Candidate(digest, gate, **{"run": {"run": "demo-0", "started_by": STARTER}, **fields})
    store.put_if_absent(candidate.key, candidate.to_bytes())
    return candidate


def policy(**changes: Any) -> Policy:
    return Policy(read_policy(changes, "test"), {}, policy_of(key_in(SIGNING)).signers)


@cache
def key(name: str) -> Ed25519PrivateKey:
    """The same key for a name every time."""
    return Ed25519PrivateKey.from_private_bytes(name.encode().ljust(32, b"."))


def approvers(*names: str) -> dict[str, Any]:
    return {name: {"key": public_text(key(name)), "also": [f"{name}@example.org"]} for name in names}


ONE = policy()
"""One unsigned approval."""
TWO_OF_THREE = policy(
    approvers=approvers("ada", "grace", "lin"),
    promote={"approvals": 2, "signed": True},
    rollback={"approvals": 1, "signed": True},
)


def checks(result: GateResult = "pass") -> tuple[GateCheck, ...]:
    """The checks of a judgement."""
    return GateCheck("held-out gain", "pass", "+4.0 points"), GateCheck("triage", result, "as it is")


def judgement(
    store: Store, candidate: Candidate, by: Policy = ONE, result: GateResult = "pass", **fields: Any
) -> Judgement:
    judged = Judgement(result, checks(result), by.sha256, candidate.evidence, read_history(store).base)
    return replace(judged, **fields)


def asked_of(candidate: Candidate, under: Policy, base: int = 0, result: GateResult = "pass") -> Question:
    """Whether to promote a candidate in the registry of the stores in memory."""
    return question(candidate, judgement(MemoryStore(), candidate, under, result, base=base), under, REGISTRY)


def approval(
    store: Store,
    candidate: Candidate,
    by: str = "ada",
    under: Policy = ONE,
    *,
    action: Action = "promote",
    signed: bool = False,
    base: int | None = None,
    reason: str = "looks right",
    judged: Judgement | None = None,
    made: datetime = NOON,
    days: float = 7,
) -> Approval:
    """A statement about a candidate, of a judgement that passes unless another is given; stored nowhere."""
    against = read_history(store).base if base is None else base
    judged = judged or judgement(store, candidate, under, base=against)
    asked = question(candidate, judged, under, identify(store))
    if action == "reject":
        asked = rejection_question(candidate, under, against, identify(store))
    statement = state(asked, by=by, reason=reason, at=made, valid=timedelta(days=days))
    return sign(statement, key(by)) if signed else Approval(statement)


def approve(store: Store, candidate: Candidate, by: str = "ada", under: Policy = ONE, **how: Any) -> PromotionRecord:
    """Approve and promote at noon."""
    store_approval(store, approval(store, candidate, by, under, **how))
    return promote(store, candidate, judgement(store, candidate, under), under, at())


def turn_down(store: Store, candidate: Candidate, by: str = "bob", under: Policy = ONE, **how: Any) -> PromotionRecord:
    """Reject at noon."""
    store_approval(store, approval(store, candidate, by, under, action="reject", **how))
    return reject(store, candidate, judgement(store, candidate, under), under, at())


def go_back(store: Store, to: str = "", by: str = "ada", under: Policy = ONE, signed: bool = False) -> PromotionRecord:
    """Roll back at noon."""
    identify(store)
    history = read_history(store)
    asked = rollback_question(history, target(history, to), under)
    statement = state(asked, by=by, reason="users complain", at=NOON, valid=timedelta(days=1))
    store_approval(store, sign(statement, key(by)) if signed else Approval(statement))
    return rollback(store, asked, under, at())
