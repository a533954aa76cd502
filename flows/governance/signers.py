"""The key that signs checkpoints here, and checkpoints of the registry whose signature holds."""

from __future__ import annotations

from pathlib import Path

from components.checkpoints.checks import check_stored
from components.config.keys import own_key_file
from components.config.promotion import Policy, load_policy
from components.errors import InputError
from components.registry import Store
from components.registry.signing import fingerprint, verify


def signing_key(project: Path, policy: Policy) -> Path | None:
    """The private key to sign with; made now where there is none and the policy lists no signers.

    Returns:
        None where the policy lists signers and none of their keys is here.

    Raises:
        InputError: the key cannot be read, others can read it, or it cannot be written.
    """
    from components.registry.keys import public_pem, read_key  # loads cryptography

    path, listed = own_key_file(project), policy.settings.signers.values()
    if not path.exists():
        if listed:
            return None
        _make(path)
    own = fingerprint(public_pem(read_key(path)))
    return path if not listed or own in map(fingerprint, listed) else None


def _make(path: Path) -> None:
    """Write a new key; one that another process has just written stays."""
    from components.registry.keys import new_key, write_key

    try:
        write_key(new_key("checkpoints"), path)
    except InputError:
        if not path.exists():
            raise


def verified(project: Path, store: Store, digest: str) -> Path:
    """The folder of a stored checkpoint that may be loaded: its files, its format and its signature hold.

    Raises:
        InputError: one of them does not, or it is not stored.
    """
    policy = load_policy(project)
    tree = store.tree(digest)
    check_stored(tree)
    verify(store, digest, policy.signers)
    return tree
