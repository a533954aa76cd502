"""Keys: Ed25519 for people who approve and for promotion records, an elliptic curve for checkpoints.

Private keys are PEM files, mode 0600.
Nothing here prints a private key or puts one into an error.
"""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path
from typing import Literal

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from components.config.keys import ED25519, approver_key
from components.errors import InputError
from components.files import flushed, os_errors
from components.opening import MOST_CONFIGURATION, open_regular

PrivateKey = Ed25519PrivateKey | ec.EllipticCurvePrivateKey
Purpose = Literal["approvals", "checkpoints", "registry"]
HOW = "make one with `evenkeel keys new NAME`"


def new_key(purpose: Purpose = "approvals") -> PrivateKey:
    """A fresh private key: P-256 to sign checkpoints with (model-signing reads such), else Ed25519."""
    return ec.generate_private_key(ec.SECP256R1()) if purpose == "checkpoints" else Ed25519PrivateKey.generate()


def write_key(key: PrivateKey, path: Path) -> Path:
    """Write a private key to a new file that only its owner can read, whole or not at all.

    Raises:
        InputError: there is a file already, which is never overwritten, or the folder cannot be written.
    """
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with os_errors("write a key", path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with flushed(path, pem, mode=0o600) as whole:
            try:
                os.link(whole, path)
            except FileExistsError:
                how = "a key is never overwritten: name another file, or move the old one away"
                raise InputError("there is a file already", where=path, how=how) from None
    return path


def read_key(path: Path) -> PrivateKey:
    """The private key in a PEM file.

    Raises:
        InputError: no such file, others can read it, or it holds no key of these kinds. The content is not repeated.
    """
    with os_errors("read a key", path), open_regular(path, how=HOW) as file:
        mode = os.fstat(file.fileno()).st_mode
        pem = file.read(MOST_CONFIGURATION)
    if stat.S_IMODE(mode) & 0o077:
        raise InputError("others can read this private key", where=path, how=f"chmod 600 {path}")
    try:
        key = load_pem_private_key(pem, password=None)
    except TypeError:
        raise InputError("the key is encrypted with a password, which is not supported", where=path, how=HOW) from None
    except (ValueError, UnsupportedAlgorithm):
        raise InputError("not a private key in PEM", where=path, how=HOW) from None
    if not isinstance(key, PrivateKey):
        raise InputError("neither an Ed25519 key nor one of an elliptic curve", where=path, how=HOW)
    return key


def read_approver_key(path: Path) -> Ed25519PrivateKey:
    """The key to approve, or to sign records, with.

    Raises:
        InputError: see `read_key`, or it is a key for checkpoints.
    """
    key = read_key(path)
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError("this key signs checkpoints, not approvals", where=path, how=HOW)
    return key


def public_text(key: Ed25519PrivateKey) -> str:
    """The public key as it stands in the policy."""
    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return ED25519 + base64.b64encode(raw).decode()


def public_pem(key: PrivateKey) -> str:
    """The public key in PEM."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def verifies(public: str, signature: bytes, data: bytes) -> bool:
    """Whether this is the signature over ``data`` of an approver's public key."""
    try:
        raw = base64.b64decode(approver_key(public).removeprefix(ED25519))
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True
