"""Promotion records: what was decided, numbered, one after the other, for good.

A record names the sha256 of the one before it, so that none can be changed or taken out of the middle unnoticed.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

from components.config.promotion import Action
from components.errors import InputError
from components.files import dump_json, load_json, sha256_json
from components.registry.approvals import Approval, parse_approval
from components.registry.base import check_digest, reading
from components.registry.clock import parse, stamp
from components.registry.statements import Question
from components.types import Judgement

SCHEMA = 2
PREFIX = "promotions/"
DOMAIN = b"evenkeel promotion record v1\n"
"""What is signed begins with this, so that no signature made for another purpose is one of a record."""
Outcome = Literal["promoted", "superseded", "rejected", "rolled back", "adopted"]
OUTCOMES: dict[Action, tuple[Outcome, ...]] = {
    "promote": ("promoted", "superseded"),
    "reject": ("rejected",),
    "rollback": ("rolled back", "superseded"),
    "adopt": ("adopted",),
}
"""What an action can come to. Superseded: the champion was another by then than the one it was decided against."""
RESTORE = "the log was changed or damaged: find out how, and restore the registry"


@dataclass(frozen=True, slots=True)
class PromotionRecord:
    """One decision.

    ``digest`` is the checkpoint that it is about, ``previous`` the champion's digest before it, ``base`` the number of
    the record that the champion stood on when it was decided (0: none), ``evidence`` the digest of the candidate's
    stored evidence, ``gate`` the result and the checks, ``approvals`` the statements that counted, ``by`` the names in
    them and ``reason`` their reasons, ``at`` the time of the record, ``before`` the sha256 of the record before it,
    ``signature`` (base64) that of the registry's key where the policy names one.

    Of a record that adopts a policy, ``digest`` is that of the new policy, ``policy_sha256`` that of the one whose
    place it takes, and ``evidence`` the sha256 of the record before it: whoever approves agrees to all that was
    decided.
    """

    number: int
    action: Action
    outcome: Outcome
    digest: str
    previous: str | None
    base: int
    evidence: str | None
    gate: Mapping[str, Any]
    policy_sha256: str
    approvals: tuple[Approval, ...]
    by: str
    reason: str
    at: str
    before: str | None
    schema: int = SCHEMA
    signature: str | None = None

    @property
    def key(self) -> str:
        return record_key(self.number)

    @property
    def says(self) -> str:
        """The decision as a sentence."""
        return f"{self.outcome} by {self.by} (record {self.number})"

    @property
    def effective(self) -> bool:
        """Whether it made its checkpoint the champion."""
        return self.outcome in ("promoted", "rolled back")

    @property
    def registry(self) -> str | None:
        """The registry that its statements name; None: they were made before there was one to name."""
        return self.approvals[0].statement.registry if self.approvals else None

    @property
    def names_gate(self) -> bool:
        """Whether its statements name what the gate says; those of earlier versions do not."""
        return self.action == "promote" and any(one.statement.gate for one in self.approvals)

    @property
    def question(self) -> Question:
        """What its statements must be about."""
        gate = verdict(self.gate) if self.names_gate else None
        return Question(self.action, self.digest, self.evidence, self.policy_sha256, self.base, self.registry, gate)

    def to_dict(self) -> dict[str, Any]:
        tree = {**asdict(self), "approvals": [approval.to_dict() for approval in self.approvals]}
        if self.signature is None:
            del tree["signature"]
        return tree

    def to_bytes(self) -> bytes:
        return dump_json(self.to_dict()).encode()

    def signed_bytes(self) -> bytes:
        """What the signature is over."""
        return DOMAIN + replace(self, signature=None).to_bytes()


def gate_of(judgement: Judgement) -> dict[str, Any]:
    """What the gate says, as a record holds it."""
    return {"result": judgement.result, "checks": [check.to_dict() for check in judgement.checks]}


def verdict(gate: Mapping[str, Any]) -> str:
    """The sha256 of what the gate says, which statements to promote name."""
    return sha256_json(gate)


def record_key(number: int) -> str:
    """Where a record is stored."""
    return f"{PREFIX}{number:06d}.json"


def parse_record(data: bytes, key: str) -> PromotionRecord:
    """A stored record, of the present schema or of the first.

    Raises:
        InputError: it is none, or is not the one that belongs under this key.
    """
    with reading("a promotion record", key, RESTORE):
        tree = load_json(data)
        record = _parse_first(tree) if tree.get("schema", 1) == 1 else _parse(tree)
    if record.key != key:
        raise InputError(f"this is record {record.number}", where=key, how=RESTORE)
    return record


def _parse(tree: Mapping[str, Any]) -> PromotionRecord:
    approvals = tuple(parse_approval(one) for one in tree["approvals"])
    record = PromotionRecord(**{**tree, "approvals": approvals})
    if record.schema != SCHEMA:
        raise ValueError(f"schema {record.schema} is not known here; a newer Evenkeel may have written it")
    if record.outcome not in OUTCOMES[record.action]:
        raise ValueError(f"{record.action} cannot come to {record.outcome!r}")
    for digest in (record.digest, record.policy_sha256, record.previous, record.evidence, record.before):
        if digest is not None:
            check_digest(digest)
    for number in (record.number, record.base):
        if isinstance(number, bool) or not isinstance(number, int):
            raise ValueError(f"{number!r} is no number of a record")
    if not isinstance(record.gate, dict) or not all(isinstance(text, str) for text in (record.by, record.reason)):
        raise ValueError("gate, by or reason are not what they should be")
    if record.signature is not None:
        try:
            base64.b64decode(record.signature, validate=True)
        except (ValueError, TypeError) as error:
            raise ValueError(f"the signature is no base64: {error}") from None
    parse(record.at)
    return record


def _parse_first(tree: Mapping[str, Any]) -> PromotionRecord:
    """Schema 1: one decision under one name, which nothing proves; what was approved became champion."""
    names = {"number", "digest", "gate", "policy_sha256", "previous"}
    if set(tree) - {"schema"} != names | {"decision", "by", "note", "at"}:
        raise ValueError("not the fields of schema 1")
    approved = {"approve": True, "reject": False}[tree["decision"]]
    return PromotionRecord(
        **{name: tree[name] for name in names},
        action="promote" if approved else "reject",
        outcome="promoted" if approved else "rejected",
        base=0,
        evidence=None,
        approvals=(),
        by=str(tree["by"]),
        reason=str(tree["note"]),
        at=stamp(datetime.fromisoformat(tree["at"])),
        before=None,
        schema=1,
    )
