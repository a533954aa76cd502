"""Signatures over the files of a checkpoint: made when it is proposed, verified before it is used.

A signature is a Sigstore bundle as `model-signing` makes it with a key on an elliptic curve, offline: an in-toto
statement with the sha256 of every file in a DSSE envelope. It is stored as `signatures/<digest>/<fingerprint>.json`,
the fingerprint being that of the public key. `model_signing verify key --ignore_git_paths False` verifies it too; here
it is done without that library, because the library goes by what the statement itself says of files that do not count,
hashes every file once more, and takes a second to load.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import sha256_bytes, sha256_json
from components.registry.base import Store, check_digest

PREFIX = "signatures/"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD = "application/vnd.in-toto+json"
STATEMENT, PREDICATE = "https://in-toto.io/Statement/v1", "https://model_signing/signature/v1.0"
EVERY_FILE = {"method": "files", "hash_type": "sha256", "allow_symlinks": False}
"""The one way of counting that is taken: it is what the digest of a checkpoint is over."""
CURVES = {"secp256r1": "SHA256", "secp384r1": "SHA384", "secp521r1": "SHA512"}
"""Curve -> hash, as the library pairs them."""
HOW = (
    "propose it again where a trusted key is, or trust the key that signed it (`signers` in "
    "configs/promotion/policy.yaml)"
)
LARGEST = 64 * 2**20
"""Bytes of a signature: a line a file of the checkpoint."""


class _Bad(Exception):
    """A signature does not hold; the text states why."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A signature that was looked at: ``problem`` is "" where it holds."""

    fingerprint: str
    signer: str
    problem: str


def fingerprint(public_key: str) -> str:
    """What a public key (PEM) is known by: sha256 over its DER form, in hexadecimal.

    Raises:
        InputError: it is no public key.
    """
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

    try:
        key = load_pem_public_key(public_key.encode())
    except ValueError as error:
        raise InputError("not a public key in PEM", how="`evenkeel keys new --for checkpoints` prints one") from error
    return sha256_bytes(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def sign(store: Store, checkpoint: Path, digest: str, key: Path) -> str:
    """Sign the files in a folder with a private key (PEM), store the signature, and return the key's fingerprint.

    Signing again with the same key does nothing; a stored signature of it that does not hold is replaced.

    Raises:
        InputError: the key cannot be used, or the folder has not this digest.
    """
    from components.registry.keys import public_pem, read_key

    private = read_key(key)
    if getattr(getattr(private, "curve", None), "name", "") not in CURVES:
        how = "make one with `evenkeel keys new NAME --for checkpoints`"
        what = "checkpoints are signed with keys of an elliptic curve (P-256, P-384, P-521)"
        raise InputError(what, where=key, how=how)
    public = public_pem(private)
    own = fingerprint(public)
    name = f"{PREFIX}{check_digest(digest)}/{own}.json"

    def change(stored: bytes | None) -> bytes | None:
        if stored is not None and not problem_of(stored, digest, public):
            return None
        signature = _signature(checkpoint, key)
        if problem := problem_of(signature, digest, public):
            raise InputError(f"the checkpoint cannot be signed: {problem}", where=checkpoint, how="propose it again")
        return signature

    store.update(name, change)
    return own


def verify(store: Store, digest: str, trusted: Mapping[str, str]) -> str:
    """The name of the trusted key with which the files of a checkpoint were signed, and no others.

    That the files are those of the digest is for the store to see to: `Store.tree` does.

    Args:
        trusted: public keys (PEM) by name.

    Raises:
        InputError: no signature of a trusted key holds; the message states for each what is wrong.
    """
    if not trusted:
        raise InputError("no key is trusted to sign checkpoints", where=digest, how=HOW)
    found = signatures(store, digest, trusted)
    for one in found:
        if not one.problem:
            return one.signer
    problems = "; ".join(f"that of {one.signer or one.fingerprint[:12]}: {one.problem}" for one in found)
    names = ", ".join(sorted(trusted))
    raise InputError(f"no signature of a trusted key ({names}): {problems or 'there is none'}", where=digest, how=HOW)


def signatures(store: Store, digest: str, trusted: Mapping[str, str]) -> list[Signed]:
    """Every stored signature of a checkpoint, and what is wrong with it."""
    known = {fingerprint(public): (name, public) for name, public in trusted.items()}
    found = []
    for key in store.keys(f"{PREFIX}{check_digest(digest)}/"):
        by = key.removeprefix(f"{PREFIX}{digest}/").removesuffix(".json")
        stored = store.get(key)
        if by not in known:
            found.append(Signed(by, "", "the key is not trusted"))
        elif stored is not None:
            name, public = known[by]
            found.append(Signed(by, name, problem_of(stored[0], digest, public)))
    return found


def problem_of(signature: bytes, digest: str, public_key: str) -> str:
    """Why a signature is not one of this key over exactly the files with this digest; "" where it is."""
    try:
        statement = _opened(signature, public_key)
        if _digest_of(statement) != digest:
            return "it is of another checkpoint"
    except _Bad as error:
        return str(error)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        return f"it cannot be read ({type(error).__name__})"
    return ""


def _opened(signature: bytes, public_key: str) -> Any:
    """The statement inside a bundle, once the signature over it was verified (DSSE: the type is signed as well)."""
    if len(signature) > LARGEST:
        raise _Bad(f"it has {len(signature)} bytes")
    bundle = json.loads(signature)
    envelope = bundle["dsseEnvelope"]
    if (bundle["mediaType"], envelope["payloadType"]) != (BUNDLE, PAYLOAD) or len(envelope["signatures"]) != 1:
        raise _Bad("it is of another format")
    payload = base64.b64decode(envelope["payload"], validate=True)
    _check_signature(base64.b64decode(envelope["signatures"][0]["sig"], validate=True), payload, public_key)
    return json.loads(payload)


def _check_signature(signature: bytes, payload: bytes, public_key: str) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    key = load_pem_public_key(public_key.encode())
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name not in CURVES:
        raise _Bad("the key is of another kind than signatures are made with")
    signed = f"DSSEv1 {len(PAYLOAD)} {PAYLOAD} {len(payload)} ".encode() + payload
    try:
        key.verify(signature, signed, ec.ECDSA(getattr(hashes, CURVES[key.curve.name])()))
    except InvalidSignature:
        raise _Bad("it was not made with this key, or was changed") from None


def _digest_of(statement: Any) -> str:
    """The digest of the checkpoint that a statement is about."""
    predicate = statement["predicate"]
    if (statement["_type"], statement["predicateType"]) != (STATEMENT, PREDICATE):
        raise _Bad("it is of another format")
    if predicate["serialization"] != EVERY_FILE:
        raise _Bad("it leaves out files, or counts them in another way")
    files = {one["name"]: one["digest"] for one in predicate["resources"] if one["algorithm"] == "sha256"}
    if len(files) != len(predicate["resources"]):
        raise _Bad("it names a file twice, or counts it in another way")
    return sha256_json(files)


def _signature(checkpoint: Path, key: Path) -> bytes:
    from model_signing import hashing, signing

    # Its own choice leaves out .gitattributes, which may be there.
    every = hashing.Config().set_ignored_paths(paths=(), ignore_git_paths=False)  # type: ignore[no-untyped-call]
    signer = signing.Config().use_elliptic_key_signer(private_key=key)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "signature"
        signer.set_hashing_config(every).sign(checkpoint, path)
        return path.read_bytes()
