"""Signed statements about what is stored with a checkpoint: its evidence, and how it compares with a champion.

A statement (in-toto) names the checkpoints by digest and what is said of them; it is signed in a DSSE envelope with a
key that signs checkpoints, and stored as `attestations/<about>/<fingerprint>.json`. Whoever reads makes the statement
that must have been signed, and takes no other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from components.errors import InputError
from components.files import dump_json
from components.registry.base import Store, check_digest
from components.registry.signing import HOW, PAYLOAD, STATEMENT, fingerprint

PREFIX = "attestations/"
LARGEST = 2**16
"""Bytes of an envelope."""


@dataclass(frozen=True, slots=True)
class Attestation:
    """That ``sha256`` is the evidence for a checkpoint, or its comparison with a champion."""

    kind: str
    subjects: tuple[str, ...]
    sha256: str

    @property
    def folder(self) -> str:
        """Where its envelopes are stored."""
        return f"{PREFIX}{self.kind}/{'-'.join(map(check_digest, (*self.subjects, self.sha256)))}/"

    def payload(self) -> bytes:
        """What is signed: one sequence of bytes for one statement."""
        subjects = [{"name": f"checkpoint {i}", "digest": {"sha256": one}} for i, one in enumerate(self.subjects)]
        statement = {
            "_type": STATEMENT,
            "subject": subjects,
            "predicateType": f"urn:evenkeel:{self.kind}:v1",
            "predicate": {"sha256": self.sha256},
        }
        return dump_json(statement).encode()


def of_evidence(checkpoint: str, evidence: str) -> Attestation:
    """That this is the evidence which the run of a checkpoint left."""
    return Attestation("evidence", (checkpoint,), evidence)


def of_comparison(candidate: str, champion: str, figures: str) -> Attestation:
    """That figures with this sha256 are those of the two on the same prompts."""
    return Attestation("comparison", (candidate, champion), figures)


def attest(store: Store, said: Attestation, key: Path) -> None:
    """Sign a statement with a private key (PEM), and store it; with the same key again it does nothing.

    Raises:
        InputError: the key cannot be used.
    """
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import CryptoSigner  # type: ignore[attr-defined]

    from components.registry.keys import public_pem, read_key

    private = read_key(key)
    public = public_pem(private)
    name = f"{said.folder}{fingerprint(public)}.json"

    def change(stored: bytes | None) -> bytes | None:
        if stored is not None and not problem_of(stored, said, public):
            return None
        envelope = Envelope(said.payload(), PAYLOAD, {})
        envelope.sign(CryptoSigner(private))
        return dump_json(envelope.to_dict()).encode()

    store.update(name, change)


def attested(store: Store, said: Attestation, trusted: Mapping[str, str]) -> str:
    """The name of the trusted key that a statement was signed with.

    Args:
        trusted: public keys (PEM) by name.

    Raises:
        InputError: no signature of a trusted key holds; the message states for each what is wrong.
    """
    problems = []
    for signer, public in trusted.items():
        stored = store.get(f"{said.folder}{fingerprint(public)}.json")
        problem = "there is none" if stored is None else problem_of(stored[0], said, public)
        if not problem:
            return signer
        problems.append(f"of {signer}: {problem}")
    what = "; ".join(problems) or "no key is trusted"
    raise InputError(f"the {said.kind} has no signature of a trusted key ({what})", where=said.sha256, how=HOW)


def problem_of(data: bytes, said: Attestation, public_key: str) -> str:
    """Why an envelope is not this statement signed with this key; "" where it is."""
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import FormatError, VerificationError
    from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]

    try:
        if len(data) > LARGEST:
            return f"it has {len(data)} bytes"
        envelope = Envelope.from_dict(json.loads(data))
        key = SSlibKey.from_crypto(load_pem_public_key(public_key.encode()))
        if (envelope.payload, envelope.payload_type) != (said.payload(), PAYLOAD):
            return "it says something else"
        envelope.verify([key], 1)
    except VerificationError:
        return "it was not made with this key, or was changed"
    except (FormatError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return f"it cannot be read ({type(error).__name__})"
    return ""
