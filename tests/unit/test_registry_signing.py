"""Signatures of checkpoints: which hold, and why the others do not."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from components.errors import InputError
from components.files import manifest, sha256_tree
from components.registry import DirectoryStore
from components.registry.keys import new_key, public_pem, read_key, write_key
from components.registry.signing import EVERY_FILE, PAYLOAD, PREFIX, fingerprint, problem_of, sign, signatures, verify
from tests.fake_line.stages.work import checkpoint


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_key(new_key("checkpoints"), tmp_path_factory.mktemp("keys") / "key.pem")


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "registry")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    checkpoint(tmp_path / "checkpoint", 1.0)
    return tmp_path / "checkpoint"


def public(key: Path) -> str:
    return public_pem(read_key(key))


def stored(store: DirectoryStore, digest: str, key: Path) -> bytes:
    found = store.get(f"{PREFIX}{digest}/{fingerprint(public(key))}.json")
    assert found is not None
    return found[0]


def test_what_was_signed_is_verified_by_the_name_of_its_key(store: DirectoryStore, folder: Path, key: Path) -> None:
    digest = store.put_tree(folder)
    assert sign(store, folder, digest, key) == fingerprint(public(key))
    assert verify(store, digest, {"ci": public(key)}) == "ci"


def test_signing_twice_changes_nothing(store: DirectoryStore, folder: Path, key: Path) -> None:
    digest = sha256_tree(folder)
    sign(store, folder, digest, key)
    before = stored(store, digest, key)
    sign(store, folder, digest, key)
    assert stored(store, digest, key) == before


def test_a_damaged_signature_of_the_same_key_is_replaced(store: DirectoryStore, folder: Path, key: Path) -> None:
    digest = sha256_tree(folder)
    store.put_if_absent(f"{PREFIX}{digest}/{fingerprint(public(key))}.json", b"{")
    sign(store, folder, digest, key)
    assert verify(store, digest, {"ci": public(key)}) == "ci"


def test_files_of_git_are_signed_too(store: DirectoryStore, folder: Path, key: Path) -> None:
    (folder / ".gitattributes").write_text("*.safetensors filter=lfs")
    digest = sha256_tree(folder)
    sign(store, folder, digest, key)
    assert verify(store, digest, {"ci": public(key)}) == "ci"


def test_what_changed_since_it_was_digested_is_not_signed(store: DirectoryStore, folder: Path, key: Path) -> None:
    with pytest.raises(InputError, match="cannot be signed: it is of another checkpoint"):
        sign(store, folder, "0" * 64, key)
    assert store.keys(PREFIX) == []


def test_an_approvers_key_signs_no_checkpoint(store: DirectoryStore, folder: Path, tmp_path: Path) -> None:
    other = write_key(new_key("approvals"), tmp_path / "ada.pem")
    with pytest.raises(InputError, match="elliptic curve"):
        sign(store, folder, sha256_tree(folder), other)


# --- what does not hold


def test_without_a_signature_nothing_is_verified(store: DirectoryStore, key: Path) -> None:
    with pytest.raises(InputError, match=r"no signature of a trusted key \(ci\): there is none"):
        verify(store, "0" * 64, {"ci": public(key)})


def test_without_a_trusted_key_nothing_is_verified(store: DirectoryStore, folder: Path, key: Path) -> None:
    digest = sha256_tree(folder)
    sign(store, folder, digest, key)
    with pytest.raises(InputError, match="no key is trusted"):
        verify(store, digest, {})


def test_the_signature_of_an_unknown_key_does_not_count(
    store: DirectoryStore, folder: Path, key: Path, tmp_path: Path
) -> None:
    digest = sha256_tree(folder)
    sign(store, folder, digest, key)
    other = public(write_key(new_key("checkpoints"), tmp_path / "other.pem"))
    with pytest.raises(InputError, match="the key is not trusted"):
        verify(store, digest, {"ci": other})
    assert signatures(store, digest, {"ci": other})[0].signer == ""


def test_a_signature_under_the_name_of_a_trusted_key_does_not_count(
    store: DirectoryStore, folder: Path, key: Path, tmp_path: Path
) -> None:
    """Somebody who can write to the registry, and has a key of their own."""
    digest, mine = sha256_tree(folder), write_key(new_key("checkpoints"), tmp_path / "mine.pem")
    sign(store, folder, digest, mine)
    store.put_if_absent(f"{PREFIX}{digest}/{fingerprint(public(key))}.json", stored(store, digest, mine))
    with pytest.raises(InputError, match="it was not made with this key, or was changed"):
        verify(store, digest, {"ci": public(key)})


def test_the_signature_of_another_checkpoint_does_not_count(
    store: DirectoryStore, folder: Path, key: Path, tmp_path: Path
) -> None:
    checkpoint(tmp_path / "other", 2.0)
    other, digest = sha256_tree(tmp_path / "other"), sha256_tree(folder)
    sign(store, tmp_path / "other", other, key)
    store.put_if_absent(f"{PREFIX}{digest}/{fingerprint(public(key))}.json", stored(store, other, key))
    with pytest.raises(InputError, match="it is of another checkpoint"):
        verify(store, digest, {"ci": public(key)})


def edited(signature: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    bundle: dict[str, Any] = json.loads(signature)
    change(bundle)
    return json.dumps(bundle).encode()


def payload(bundle: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> None:
    statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    change(statement)
    bundle["dsseEnvelope"]["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda b: b["dsseEnvelope"].update(payloadType="text/plain"), "another format"),
        (lambda b: b.update(mediaType="application/json"), "another format"),
        (lambda b: b["dsseEnvelope"]["signatures"].append(b["dsseEnvelope"]["signatures"][0]), "another format"),
        (lambda b: b["dsseEnvelope"].update(signatures=[]), "another format"),
        (lambda b: b["dsseEnvelope"]["signatures"][0].update(sig="AAAA"), "was changed"),
        (lambda b: b["dsseEnvelope"]["signatures"][0].update(sig="%"), "cannot be read"),
        (lambda b: b["dsseEnvelope"].update(payload="!"), "cannot be read"),
        (lambda b: b.pop("dsseEnvelope"), "cannot be read"),
        (lambda b: payload(b, lambda s: s["predicate"]["resources"].pop()), "was changed"),
        (lambda b: payload(b, lambda s: s["predicate"]["resources"][0].update(digest="0" * 64)), "was changed"),
    ],
)
def test_a_signature_that_was_changed_does_not_hold(
    store: DirectoryStore, folder: Path, key: Path, change: Callable[[dict[str, Any]], object], problem: str
) -> None:
    digest = sha256_tree(folder)
    sign(store, folder, digest, key)
    assert problem_of(stored(store, digest, key), digest, public(key)) == ""
    assert problem in problem_of(edited(stored(store, digest, key), change), digest, public(key))


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{}", b"\xff", b"[" * 100_000])
def test_what_is_no_signature_is_said_to_be_none(data: bytes, key: Path) -> None:
    assert "it cannot be read" in problem_of(data, "0" * 64, public(key))


# --- signed by a trusted key, and still not about every file of the checkpoint


def made(key: Path, folder: Path, change: Callable[[dict[str, Any]], object]) -> bytes:
    """A signature of a trusted key over a statement of another kind than is made here."""
    files = [{"name": n, "algorithm": "sha256", "digest": d} for n, d in manifest(folder).items()]
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "predicateType": "https://model_signing/signature/v1.0",
        "predicate": {"serialization": dict(EVERY_FILE), "resources": files},
    }
    change(statement)
    body = json.dumps(statement).encode()
    private = read_key(key)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    signed = private.sign(f"DSSEv1 {len(PAYLOAD)} {PAYLOAD} {len(body)} ".encode() + body, ec.ECDSA(hashes.SHA256()))
    envelope = {"payload": base64.b64encode(body).decode(), "payloadType": PAYLOAD}
    return json.dumps(
        {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "dsseEnvelope": {**envelope, "signatures": [{"sig": base64.b64encode(signed).decode()}]},
        }
    ).encode()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda s: None, ""),
        (lambda s: s["predicate"]["serialization"].update(ignore_paths=["extra.json"]), "it leaves out files"),
        (lambda s: s["predicate"]["serialization"].update(allow_symlinks=True), "it leaves out files"),
        (lambda s: s["predicate"]["serialization"].update(hash_type="blake3"), "it leaves out files"),
        (lambda s: s["predicate"]["serialization"].update(method="shards"), "it leaves out files"),
        (lambda s: s.update(predicateType="https://model_signing/Digests/v0.1"), "another format"),
        (lambda s: s["predicate"]["resources"].append(s["predicate"]["resources"][0]), "it names a file twice"),
        (lambda s: s["predicate"]["resources"][0].update(algorithm="md5"), "it names a file twice"),
        (lambda s: s["predicate"]["resources"].pop(), "it is of another checkpoint"),
    ],
)
def test_a_statement_that_is_not_about_every_file_does_not_hold_whoever_signed_it(
    folder: Path, key: Path, change: Callable[[dict[str, Any]], object], problem: str
) -> None:
    assert problem in problem_of(made(key, folder, change), sha256_tree(folder), public(key))
