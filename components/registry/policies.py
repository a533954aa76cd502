"""The policies that records were decided by, as `policies/<sha256>.json`: whoever verifies needs no history of Git.

Whoever can write to the store can add a policy. That gives it no force: a record names its policy by digest, and only
one that was adopted, or is the project's own, counts (`adoption`).
"""

from __future__ import annotations

from components.config.promotion import Policy
from components.errors import InputError
from components.files import dump_json, load_json, sha256_bytes
from components.registry.base import Store, check_digest
from components.registry.records import RESTORE

PREFIX = "policies/"


def store_policy(store: Store, policy: Policy) -> None:
    """Keep a policy for good; storing it again does nothing."""
    store.put_if_absent(policy_key(policy.sha256), dump_json(policy.content).encode())


def policy_key(sha256: str) -> str:
    """Where a policy is stored."""
    return f"{PREFIX}{check_digest(sha256)}.json"


def stored_policy(store: Store, sha256: str) -> Policy | None:
    """The policy with this digest; None where it is not stored, or this version cannot read it.

    Raises:
        InputError: what is stored is another one.
    """
    stored = store.get(policy_key(sha256))
    if stored is None:
        return None
    if sha256_bytes(stored[0]) != sha256:
        raise InputError("a stored policy was changed", where=policy_key(sha256), how=RESTORE)
    try:
        policy = Policy.of_content(load_json(stored[0]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return policy if policy.sha256 == sha256 else None
