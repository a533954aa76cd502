"""Public keys as they stand in a policy. An error never repeats one: it may be a private key."""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path

from components.errors import InputError
from components.opening import MOST_CONFIGURATION, read_regular

ED25519 = "ed25519:"
LENGTH = 32
"""Bytes of an Ed25519 public key."""
REGISTRY_KEY = "EVENKEEL_REGISTRY_KEY"
"""Environment variable: the file of the registry's private key."""
HOW = "`evenkeel keys new NAME` prints the line"


def approver_key(text: str) -> str:
    """``text`` itself, an Ed25519 public key as ``ed25519:`` and base64.

    Raises:
        ValueError: it is none.
    """
    if "PRIVATE" in text:
        raise ValueError("this is a private key; keep it to yourself, make another, and write its public key here")
    if not text.startswith(ED25519):
        raise ValueError(f"not an approver's key; it begins with {ED25519!r}; {HOW}")
    encoded = text.removeprefix(ED25519)
    try:
        raw = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raise ValueError(f"not base64 after {ED25519!r}; {HOW}") from None
    if len(raw) != LENGTH or base64.b64encode(raw).decode() != encoded:
        raise ValueError(f"not an Ed25519 public key: {LENGTH} bytes in base64 are expected; {HOW}")
    return text


def signer_key(text: str) -> str:
    """``text`` itself, the public key of an elliptic curve in PEM.

    Raises:
        ValueError: it is none.
    """
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if "PRIVATE" in text:
        raise ValueError("this is a private key; keep it to yourself, make another, and write its public key here")
    try:
        key = load_pem_public_key(text.encode())
    except ValueError:
        raise ValueError("not a public key in PEM; `evenkeel keys new NAME --for checkpoints` prints it") from None
    if not isinstance(key, EllipticCurvePublicKey):
        raise ValueError("checkpoints are signed with keys of an elliptic curve; `evenkeel keys new --for checkpoints`")
    return text


def own_key_file(project: Path) -> Path:
    """Where the private key of a project is, which signs checkpoints if no other key does."""
    return project / ".state" / "keys" / "checkpoints.pem"


def registry_key_file(project: Path) -> Path:
    """Where the private key is that promotion records are signed with: what `EVENKEEL_REGISTRY_KEY` names, or a file of
    the project that is neither in the registry nor under version control."""
    named = os.environ.get(REGISTRY_KEY)
    return Path(named) if named else project / ".state" / "keys" / "registry.pem"


def own_signer(project: Path) -> str | None:
    """The public key (PEM) of the project itself; None before it has one.

    Raises:
        InputError: there is a file, and it holds no such key. The content is not repeated.
    """
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    path = own_key_file(project)
    if not path.is_file():
        return None
    data = read_regular(path, most=MOST_CONFIGURATION)
    try:
        public = load_pem_private_key(data, password=None).public_key()
        return signer_key(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())
    except (ValueError, TypeError):
        how = "put back the key, or move the file away; a new key is made, and what the old one signed counts no more"
        raise InputError("this is not a key that signs checkpoints", where=path, how=how) from None
