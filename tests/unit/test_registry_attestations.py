"""Signed statements about evidence and comparisons: of these checkpoints, these figures, by a trusted key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from components.errors import InputError
from components.files import dump_json
from components.registry.attestations import attest, attested, of_comparison, of_evidence
from components.registry.keys import public_pem, read_key
from tests.proposals import key_in
from tests.unit.deciding import MemoryStore

ONE, OTHER, FIGURES = "a" * 64, "b" * 64, "c" * 64
SAID = of_evidence(ONE, FIGURES)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return key_in(tmp_path)


@pytest.fixture
def trusted(key: Path) -> dict[str, str]:
    return {"ci": public_pem(read_key(key))}


@pytest.fixture
def store(key: Path) -> MemoryStore:
    made = MemoryStore()
    attest(made, SAID, key)
    return made


def test_a_statement_that_was_signed_holds_and_is_signed_once(store, key, trusted):
    before = dict(store.objects)
    attest(store, SAID, key)
    assert store.objects == before
    assert attested(store, SAID, trusted) == "ci"


@pytest.mark.parametrize(
    "said", [of_evidence(OTHER, FIGURES), of_evidence(ONE, OTHER), of_comparison(ONE, OTHER, FIGURES)]
)
def test_no_other_statement_holds(store, trusted, said):
    with pytest.raises(InputError, match="of ci: there is none"):
        attested(store, said, trusted)


def test_an_envelope_is_no_signature_over_another_statement(store, trusted):
    (name,) = [name for name in store.objects if name.startswith("attestations/")]
    other = of_evidence(OTHER, FIGURES)
    store.objects[other.folder + name.rpartition("/")[2]] = store.objects[name]
    with pytest.raises(InputError, match="it says something else"):
        attested(store, other, trusted)


def test_a_key_that_is_not_trusted_signs_in_vain(store, tmp_path):
    (tmp_path / "else").mkdir()
    stranger = {"stranger": public_pem(read_key(key_in(tmp_path / "else")))}
    with pytest.raises(InputError, match="of stranger: there is none"):
        attested(store, SAID, stranger)
    with pytest.raises(InputError, match="no key is trusted"):
        attested(store, SAID, {})


@pytest.mark.parametrize("damage", ["signature", "payload", "list", "garbage", "large"])
def test_a_damaged_envelope_does_not_hold_and_is_signed_again(store, key, trusted, damage):
    (name,) = [name for name in store.objects if name.startswith("attestations/")]
    envelope = json.loads(store.objects[name])
    if damage == "signature":
        envelope["signatures"][0]["sig"] = "AAAA"
    elif damage == "payload":
        envelope["payload"] = "e30="
    damaged = {"list": b"[]", "garbage": b"\xff", "large": b" " * 2**17}.get(damage, dump_json(envelope).encode())
    store.objects[name] = damaged
    with pytest.raises(InputError, match="has no signature of a trusted key"):
        attested(store, SAID, trusted)
    attest(store, SAID, key)
    assert attested(store, SAID, trusted) == "ci"
