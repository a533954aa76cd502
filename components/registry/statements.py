"""What a person states about a checkpoint: everything that the statement holds for, in one sequence of bytes."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any, get_args

from components.config.people import check_by, check_recorded_name
from components.config.promotion import Action
from components.errors import InputError
from components.registry.base import check_digest
from components.registry.clock import parse, stamp
from components.registry.identity import check_identity

DOMAIN = b"evenkeel approval v2\n"
"""What is signed begins with this, so that no signature made for another purpose is one of an approval."""
DOMAIN_WITHOUT_REGISTRY = b"evenkeel approval v1\n"
"""What it began with while statements named no registry."""
LONGEST_REASON = 4000
TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that make text show in another order than it is stored."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a statement is about.

    ``evidence`` is the digest of the candidate's stored evidence, ``policy`` that of the policy, ``base`` the number of
    the record that the champion stands on (0: there is none), and ``registry`` the identity of the registry: "" where
    it has none yet, so that nothing is an answer; None in a record of when there were none. ``gate`` is the sha256 of
    what the gate says (`records.verdict`); None where nothing is judged, and in records of when it was not named.
    """

    action: Action
    digest: str
    evidence: str | None
    policy: str
    base: int
    registry: str | None
    gate: str | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """A person's answer. Without a signature ``by`` is a name that somebody typed; times are as `clock.stamp` writes
    them. Without a ``registry``, or to promote without a ``gate``, it was made by an earlier version, and counts in the
    records of that time alone."""

    action: Action
    digest: str
    evidence: str | None
    policy: str
    base: int
    registry: str | None
    by: str
    reason: str
    at: str
    expires: str
    gate: str | None = None

    def __post_init__(self) -> None:
        if self.action not in get_args(Action):
            raise ValueError(f"{self.action!r} is no action")
        for digest in (self.digest, self.policy, self.evidence, self.gate):
            if digest is not None:
                check_digest(digest)
        if isinstance(self.base, bool) or not isinstance(self.base, int) or self.base < 0:
            raise ValueError("the base is not the number of a record")
        if self.registry is not None:
            check_identity(self.registry)
        if (check_recorded_name if self.registry is None else check_by)(self.by) != self.by:
            raise ValueError("the name has spaces around it")
        check_reason(self.reason)
        if not parse(self.at) < parse(self.expires):
            raise ValueError("it expires before it is made")

    @property
    def question(self) -> Question:
        return Question(self.action, self.digest, self.evidence, self.policy, self.base, self.registry, self.gate)

    def to_dict(self) -> dict[str, Any]:
        later = {"registry", "gate"}
        return {name: value for name, value in asdict(self).items() if value is not None or name not in later}

    def signed_bytes(self) -> bytes:
        """What a signature is over: one sequence of bytes for one statement."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return (DOMAIN_WITHOUT_REGISTRY if self.registry is None else DOMAIN) + text.encode()


def state(question: Question, *, by: str, reason: str, at: datetime, valid: timedelta) -> Statement:
    """A statement made now.

    Raises:
        InputError: name or reason cannot be recorded.
    """
    try:
        name, why = check_by(by), check_reason(reason.strip())
        question_fields = {field.name: getattr(question, field.name) for field in fields(question)}
        return Statement(**question_fields, by=name, reason=why, at=stamp(at), expires=stamp(at + valid))
    except ValueError as error:
        how = "give your name with --by, or another of yours that the policy lists under `also`, and a plain reason"
        raise InputError(str(error), where="the statement", how=how) from None


def check_reason(reason: str) -> str:
    """``reason`` itself.

    Raises:
        ValueError: it is too long, or holds what could change how a terminal shows it.
    """
    if len(reason) > LONGEST_REASON:
        raise ValueError(f"the reason has {len(reason)} characters, {LONGEST_REASON} are allowed")
    for character in reason:
        if character in TURNS or (unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t"):
            raise ValueError("the reason holds characters that control a terminal")
    return reason
