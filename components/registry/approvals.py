"""Statements of people, signed where the policy requires it.

Stored under `approvals/<digest>/<sha256>.json`, once, and never changed.
"""

from __future__ import annotations

import base64
import binascii
import json
import unicodedata
from collections.abc import Set
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from components.errors import InputError
from components.files import dump_json, load_json, sha256_bytes
from components.registry.base import Store, check_digest, reading
from components.registry.statements import Statement

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PREFIX = "approvals/"
LONGEST_TEXT = 20_000
"""Characters of an approval that somebody pastes."""
HOW = "make another with `evenkeel approve`"


@dataclass(frozen=True, slots=True)
class Approval:
    """A statement with the public key (``ed25519:...``) and the signature (base64), or without both."""

    statement: Statement
    key: str | None = None
    signature: str | None = None

    def __post_init__(self) -> None:
        if (self.key is None) != (self.signature is None):
            raise ValueError("an approval has a key and a signature, or neither")
        if any(unicodedata.category(character) == "Cs" for character in f"{self.key}{self.signature}"):
            raise ValueError("the key or the signature holds what is no character and cannot be stored")

    @property
    def signed(self) -> bool:
        return self.key is not None

    @property
    def sha256(self) -> str:
        return sha256_bytes(self.to_bytes())

    @property
    def stored_under(self) -> str:
        """Its key in the store."""
        return f"{PREFIX}{self.statement.digest}/{self.sha256}.json"

    def to_dict(self) -> dict[str, Any]:
        return {"statement": self.statement.to_dict(), "key": self.key, "signature": self.signature}

    def to_bytes(self) -> bytes:
        return dump_json(self.to_dict()).encode()

    def to_text(self) -> str:
        """One line that can be pasted elsewhere; `read_approval` reads it."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sign(statement: Statement, key: Ed25519PrivateKey) -> Approval:
    """The statement with a signature."""
    from components.registry.keys import public_text

    signature = base64.b64encode(key.sign(statement.signed_bytes())).decode()
    return Approval(statement, public_text(key), signature)


def signature_holds(approval: Approval) -> bool:
    """Whether the signature is one of the key stored with it. The policy decides whose key that is."""
    from components.registry.keys import verifies

    if approval.key is None or approval.signature is None:
        return False
    try:
        signature = base64.b64decode(approval.signature, validate=True)
    except (binascii.Error, ValueError):
        return False
    return verifies(approval.key, signature, approval.statement.signed_bytes())


def store_approval(store: Store, approval: Approval) -> Approval:
    """Keep an approval for good; storing it again does nothing. That it is stored does not mean that it counts."""
    store.put_if_absent(approval.stored_under, approval.to_bytes())
    return approval


def approvals_of(store: Store, digest: str) -> list[Approval]:
    """Everything that was stated about a checkpoint, oldest first.

    Raises:
        InputError: one cannot be read, or was changed after it was stored.
    """
    found = []
    for key in store.keys(f"{PREFIX}{check_digest(digest)}/"):
        stored = store.get(key)
        if stored is not None:
            approval = _read(stored[0].decode(errors="replace"), where=key)
            if approval.stored_under != key:
                how = "find out how, and restore the registry"
                raise InputError("a stored approval was changed", where=key, how=how)
            found.append(approval)
    return sorted(found, key=lambda one: (one.statement.at, one.statement.by, one.sha256))


def read_approval(text: str, where: str) -> Approval:
    """An approval that a person pastes.

    Raises:
        InputError: it is not one.
    """
    if len(text) > LONGEST_TEXT:
        raise InputError(f"not an approval: {len(text)} characters", where=where, how=HOW)
    return _read(text, where)


def _read(text: str, where: str) -> Approval:
    """However long: whatever could be stored has to be readable."""
    with reading("an approval", where, HOW):
        return parse_approval(load_json(text))


def parse_approval(tree: Any) -> Approval:
    """An approval from parsed JSON.

    Raises:
        ValueError, InputError: it is not one.
    """
    parts = _object(tree, Approval)
    statement = _object(parts["statement"], Statement, maybe={"registry", "gate"})
    for name, value in (*statement.items(), ("key", parts["key"]), ("signature", parts["signature"])):
        may_be_null = name in ("evidence", "key", "signature")
        if name != "base" and not isinstance(value, str) and not (may_be_null and value is None):
            raise ValueError(f"{name} is not text")
    return Approval(Statement(**{"registry": None, **statement}), parts["key"], parts["signature"])


def _object(tree: Any, kind: type[Approval] | type[Statement], maybe: Set[str] = frozenset()) -> dict[str, Any]:
    """``tree`` if it has the fields of ``kind``, but perhaps for ``maybe``, and no others."""
    names = {field.name for field in fields(kind)}
    if not isinstance(tree, dict) or set(tree) | maybe != names:
        raise ValueError(f"an object with {', '.join(sorted(names))}, and nothing else, is expected")
    return tree
