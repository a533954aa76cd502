"""Decisions about candidates, and the alias that follows them.

The numbered promotion records are the truth; the alias `champion` is a pointer to the latest approved one. A record is
written before the alias moves, so after a crash in between the next call finds the record and moves the alias.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from components.errors import InputError, NoCandidate
from components.files import dump_json
from components.registry.base import Conflict, Store
from components.registry.candidates import PROPOSABLE, Candidate, find

SCHEMA = 1
PREFIX = "promotions/"
CHAMPION = "aliases/champion.json"
Decision = Literal["approve", "reject"]


@dataclass(frozen=True, slots=True)
class PromotionRecord:
    """One decision, for good.

    ``gate`` is the evidence it was made on, ``policy_sha256`` the policy the gate applied, ``previous`` the champion's
    digest before it, ``at`` an ISO 8601 time with its zone. ``by`` is a name someone typed: a claim, not a proof.
    """

    number: int
    digest: str
    decision: Decision
    by: str
    note: str
    at: str
    gate: Mapping[str, Any]
    policy_sha256: str
    previous: str | None
    schema: int = SCHEMA

    @property
    def key(self) -> str:
        return f"{PREFIX}{self.number:06d}.json"

    def to_bytes(self) -> bytes:
        return dump_json(asdict(self)).encode()


@dataclass(frozen=True, slots=True)
class Alias:
    """What `champion` points to, and the record that put it there."""

    digest: str
    record: int


def approve(
    store: Store, digest_prefix: str, *, by: str, decision: Decision, note: str, at: datetime
) -> PromotionRecord:
    """Record a person's decision on a candidate; an approval moves the alias `champion`.

    Idempotent: the same decision again returns the first record (and finishes what a crash may have left undone).

    Raises:
        NoCandidate: the gate failed for it.
        InputError: unknown or ambiguous digest, nobody named, the opposite was decided before, or the stored files
            do not have the digest any more.
    """
    _check_form(by, decision, at)
    candidate = find(store, digest_prefix)
    if candidate.gate.get("result") not in PROPOSABLE:
        raise NoCandidate("the gate failed for this candidate", where=candidate.digest, how="read its gate checks")
    if decision == "approve":
        store.tree(candidate.digest)
    record = _decide(store, candidate, by=by, decision=decision, note=note, at=at.isoformat())
    if decision == "approve":
        _follow(store)
    return record


def _check_form(by: str, decision: str, at: datetime) -> None:
    if not by.strip():
        raise InputError("a decision needs the name of the person who makes it", where="by", how="give a name")
    if decision not in get_args(Decision):
        raise InputError(f"not a decision: {decision!r}", where="decision", how="write approve or reject")
    if at.tzinfo is None:
        raise ValueError("the time of a decision must have a time zone")


def _decide(store: Store, candidate: Candidate, *, by: str, decision: Decision, note: str, at: str) -> PromotionRecord:
    """Append the record under the next free number, unless the candidate is decided."""
    while True:
        log = records(store)
        for earlier in log:
            if earlier.digest == candidate.digest:
                return _same(earlier, decision)
        record = PromotionRecord(
            number=len(log) + 1,
            digest=candidate.digest,
            decision=decision,
            by=by,
            note=note,
            at=at,
            gate=candidate.gate,
            policy_sha256=candidate.policy_sha256,
            previous=_latest_approved(log),
        )
        if store.put_if_absent(record.key, record.to_bytes()):
            return record


def _same(earlier: PromotionRecord, decision: Decision) -> PromotionRecord:
    if earlier.decision != decision:
        raise InputError(
            f"already decided: {earlier.decision} by {earlier.by} (record {earlier.number})",
            where=earlier.digest,
            how="a decision is final; train and propose another checkpoint",
        )
    return earlier


def _latest_approved(log: list[PromotionRecord]) -> str | None:
    approved = [record.digest for record in log if record.decision == "approve"]
    return approved[-1] if approved else None


def _follow(store: Store) -> None:
    """Bring the alias to the latest approved record; never back to an earlier one."""
    while True:
        stored = store.get(CHAMPION)
        current = _parse_alias(stored[0]).record if stored else 0
        approved = [record for record in records(store) if record.decision == "approve" and record.number > current]
        if not approved:
            return
        alias = Alias(approved[-1].digest, approved[-1].number)
        store.tree(alias.digest)
        try:
            store.compare_and_swap(CHAMPION, dump_json(asdict(alias)).encode(), stored[1] if stored else None)
        except Conflict:
            continue


def records(store: Store) -> list[PromotionRecord]:
    """Every decision, in order.

    Raises:
        InputError: a number is missing, or a record cannot be read: the log was tampered with.
    """
    found = [(key, store.get(key)) for key in store.keys(PREFIX)]
    log = [_parse_record(stored[0], key) for key, stored in found if stored is not None]
    if [record.number for record in log] != list(range(1, len(log) + 1)):
        raise InputError(
            "the promotion records are not numbered 1, 2, 3, ...", where=PREFIX, how="restore the registry"
        )
    return log


def champion(store: Store) -> Alias | None:
    """What the alias points to, or None before the first approval."""
    stored = store.get(CHAMPION)
    return None if stored is None else _parse_alias(stored[0])


def _parse_record(data: bytes, key: str) -> PromotionRecord:
    try:
        record = PromotionRecord(**json.loads(data))
    except (ValueError, TypeError) as error:
        raise InputError(f"not a promotion record: {error}", where=key, how="restore the registry") from error
    if record.schema != SCHEMA or record.key != key:
        raise InputError("a promotion record of another schema or number", where=key, how="restore the registry")
    return record


def _parse_alias(data: bytes) -> Alias:
    try:
        return Alias(**json.loads(data))
    except (ValueError, TypeError) as error:
        raise InputError(f"not an alias: {error}", where=CHAMPION, how="restore the registry") from error
