"""Promotion records, signed with the registry's key: only who has it writes a record that counts."""

from __future__ import annotations

import base64
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from components.config.keys import REGISTRY_KEY, registry_key_file
from components.config.promotion import Policy
from components.errors import InputError
from components.registry import PromotionRecord, Store, read_history, sign, state, store_approval
from components.registry.adoption import adopt, adoption_question
from components.registry.keys import public_text, write_key
from components.registry.records import parse_record
from flows.governance.policies import problems
from flows.governance.registry import RegistryContext
from tests.unit.deciding import NOON, MemoryStore, approve, approvers, at, go_back, key, policy, propose, turn_down


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture(autouse=True)
def sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evidence of these candidates is not what is tested here, and no key comes from the environment."""
    monkeypatch.setattr("flows.governance.policies.refused_now", lambda *_: "")
    monkeypatch.delenv(REGISTRY_KEY, raising=False)


@pytest.fixture
def keyed(tmp_path: Path) -> Policy:
    """A policy that names a key, which lies in the project."""
    return names_key(policy(), tmp_path, key("registry"))


def names_key(of: Policy, project: Path, private: Ed25519PrivateKey) -> Policy:
    write_key(private, registry_key_file(project))
    settings = of.settings.model_copy(update={"registry_key": public_text(private)})
    return replace(of, settings=settings, project=project)


def broken(store: Store, of: Policy) -> dict[int, str]:
    assert of.project is not None
    return problems(RegistryContext(of.project, store, of), read_history(store))


def forge(store: MemoryStore, record: PromotionRecord) -> None:
    """Write a record as one who can write to the store, and has all keys but that of the registry."""
    assert store.put_if_absent(record.key, record.to_bytes())


def test_every_decision_is_signed_and_holds(store: MemoryStore, keyed: Policy) -> None:
    first, second = propose(store), propose(store, 1.0)
    records = [
        approve(store, first, under=keyed),
        approve(store, second, under=keyed),
        turn_down(store, propose(store, 2.0), under=keyed),
        go_back(store, under=keyed),
    ]
    assert all(record.signature for record in records)
    assert not broken(store, keyed)


def test_a_record_is_the_same_after_it_was_read(store: MemoryStore, keyed: Policy) -> None:
    record = approve(store, propose(store), under=keyed)
    assert parse_record(record.to_bytes(), record.key) == record


@pytest.mark.parametrize(("other", "said"), [(None, "it is not here"), ("other", "another key than the policy names")])
def test_without_the_key_or_with_another_nothing_is_decided(
    store: MemoryStore, keyed: Policy, tmp_path: Path, other: str | None, said: str
) -> None:
    registry_key_file(tmp_path).unlink()
    if other is not None:
        write_key(key(other), registry_key_file(tmp_path))
    with pytest.raises(InputError, match=said) as caught:
        approve(store, propose(store), under=keyed)
    assert REGISTRY_KEY in str(caught.value)
    assert not read_history(store).records


def test_the_environment_names_a_file_elsewhere(
    store: MemoryStore, keyed: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.move(registry_key_file(tmp_path), tmp_path / "elsewhere.pem")
    monkeypatch.setenv(REGISTRY_KEY, str(tmp_path / "elsewhere.pem"))
    assert approve(store, propose(store), under=keyed).signature


def test_approvals_that_were_given_do_not_make_a_record_without_the_key(store: MemoryStore, keyed: Policy) -> None:
    """Of the same approvals, a writer to the store makes a record without a signature, or with one of their own."""
    elsewhere = MemoryStore()
    record = approve(elsewhere, propose(elsewhere), under=keyed)
    unsigned, own = replace(record, signature=None), key("mallory").sign(record.signed_bytes())
    for forged, why in ((unsigned, "it is not signed"), (signed_by(record, own), "is not one of the registry's key")):
        copied = MemoryStore()
        propose(copied)
        forge(copied, forged)
        assert why in broken(copied, keyed)[1]


def signed_by(record: PromotionRecord, signature: bytes) -> PromotionRecord:
    return replace(record, signature=base64.b64encode(signature).decode())


def test_a_signature_of_one_record_is_none_of_another(store: MemoryStore, keyed: Policy) -> None:
    record = approve(store, propose(store), under=keyed)
    store.objects[record.key] = replace(record, reason="another").to_bytes()
    assert "is not one of the registry's key" in broken(store, keyed)[1]


def test_a_signature_that_is_no_base64_makes_no_record(store: MemoryStore, keyed: Policy) -> None:
    record = approve(store, propose(store), under=keyed)
    with pytest.raises(InputError, match="base64"):
        parse_record(replace(record, signature="ä!").to_bytes(), record.key)


def test_who_adopts_a_policy_with_another_key_signs_with_that_of_before(tmp_path: Path) -> None:
    """As TUF rotates a root: the record that names the new key is signed with the old one."""
    store = MemoryStore()
    people = policy(approvers=approvers("ada"), promote={"signed": True})
    old = names_key(people, tmp_path / "old", key("registry"))
    approve(store, propose(store), under=old, signed=True)
    new = replace(names_key(people, tmp_path / "new", key("next")), project=tmp_path / "old")
    question = adoption_question(read_history(store), new)
    statement = state(question, by="ada", reason="", at=NOON, valid=timedelta(days=7))
    store_approval(store, sign(statement, key("ada")))
    record = adopt(store, question, old, new, at())
    assert record.signature
    assert not problems(RegistryContext(tmp_path / "old", store, new), read_history(store))
    forged = signed_by(record, key("next").sign(record.signed_bytes()))
    store.objects[record.key] = forged.to_bytes()
    assert "is not one of the registry's key" in broken(store, new)[record.number]
