"""A witness: a second store that notices records that were removed or replaced, also all at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from components.config.promotion import Policy
from components.config.registry import RegistrySettings
from components.errors import InputError
from components.files import dump_json
from components.registry import DirectoryStore, read_history
from components.registry.identity import KEY
from components.registry.witness import PREFIX, check_seen
from flows.governance.policies import check_champion, check_witness
from flows.governance.registry import RegistryContext
from tests.unit.deciding import MemoryStore, approve, policy, propose, turn_down


@pytest.fixture(autouse=True)
def sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evidence of these candidates is not what is tested here."""
    monkeypatch.setattr("flows.governance.policies.refused_now", lambda *_: "")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def seen(tmp_path: Path) -> Policy:
    """A policy with a witness in a folder."""
    settings = policy().settings.model_copy(update={"witness": RegistrySettings(path=Path("witness"))})
    return replace(policy(), settings=settings, project=tmp_path)


def witness(of: Policy) -> DirectoryStore:
    assert of.project is not None
    return DirectoryStore(of.project / "witness")


def context(store: MemoryStore, of: Policy) -> RegistryContext:
    assert of.project is not None
    return RegistryContext(of.project, store, of)


def refused(store: MemoryStore, of: Policy, why: str) -> None:
    """Nothing is decided, and the champion is not given out."""
    before = dict(store.objects)
    with pytest.raises(InputError, match=why):
        approve(store, propose(store, 9.0), under=of)
    assert {name for name in store.objects if name.startswith("promotions/")} <= set(before)
    with pytest.raises(InputError, match=why):
        check_champion(context(store, of), read_history(store))


def test_it_has_seen_every_decision(store: MemoryStore, seen: Policy) -> None:
    approve(store, propose(store), under=seen)
    turn_down(store, propose(store, 1.0), under=seen)
    assert witness(seen).keys(PREFIX) == ["heads/000001.json", "heads/000002.json"]
    assert check_witness(context(store, seen), read_history(store)) == "it has seen record 2"
    check_champion(context(store, seen), read_history(store))


def test_a_registry_that_was_put_back_as_a_whole_is_noticed(store: MemoryStore, seen: Policy) -> None:
    approve(store, propose(store), under=seen)
    earlier = dict(store.objects)
    approve(store, propose(store, 1.0), under=seen)
    store.objects = earlier
    refused(store, seen, "the witness has seen record 2, and this registry has 1")


def test_records_that_were_replaced_are_noticed(
    store: MemoryStore, seen: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever holds all keys can write another history from some record on; it is another than was seen."""
    approve(store, propose(store), under=seen)
    earlier = dict(store.objects)
    approve(store, propose(store, 1.0), under=seen)
    store.objects = earlier
    unseen(monkeypatch, store, seen, 2.0)
    refused(store, seen, "record 2 is another one than the witness has seen")


def unseen(monkeypatch: pytest.MonkeyPatch, store: MemoryStore, of: Policy, value: float) -> None:
    """A decision that the witness does not learn of."""
    with monkeypatch.context() as patch:
        patch.setattr("components.registry.appending.witness_of", lambda _: None)
        approve(store, propose(store, value), under=of)


def test_another_registry_with_the_same_witness_is_refused(store: MemoryStore, seen: Policy) -> None:
    approve(store, propose(store), under=seen)
    other = MemoryStore()
    other.objects[KEY] = dump_json({"identity": "f" * 32}).encode()
    with pytest.raises(InputError, match="the witness is that of the registry 01234567"):
        approve(other, propose(other), under=seen)
    assert not read_history(other).records


def test_the_registry_is_no_witness_of_itself(
    store: MemoryStore, seen: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    approve(store, propose(store), under=seen)
    for place in ("components.registry.appending", "flows.governance.policies"):
        monkeypatch.setattr(f"{place}.witness_of", lambda _: store)
    refused(store, seen, "the witness holds candidates, so it is a registry")


def test_what_it_missed_it_gets_with_the_next_decision(
    store: MemoryStore, seen: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed between the record and the witness leaves one that was not seen."""
    approve(store, propose(store), under=seen)
    unseen(monkeypatch, store, seen, 1.0)
    assert "not yet the 1 after it" in check_witness(context(store, seen), read_history(store))
    approve(store, propose(store, 2.0), under=seen)
    assert check_witness(context(store, seen), read_history(store)) == "it has seen record 3"


def test_records_appended_by_others_meanwhile_are_no_alarm(store: MemoryStore, seen: Policy) -> None:
    approve(store, propose(store), under=seen)
    old = read_history(store)
    approve(store, propose(store, 1.0), under=seen)
    assert check_seen(witness(seen), store, old) == 2


def test_a_witness_that_cannot_be_reached_stops_the_decision(store: MemoryStore, seen: Policy, tmp_path: Path) -> None:
    (tmp_path / "witness").write_text("no folder")
    with pytest.raises(InputError):
        approve(store, propose(store), under=seen)
    assert not read_history(store).records


@pytest.mark.parametrize("head", [b"{}", b"\xff", b"[1]", b'{"number": 3, "sha256": "%b"}' % (b"a" * 64)])
def test_a_head_that_is_none_is_refused(store: MemoryStore, seen: Policy, head: bytes) -> None:
    approve(store, propose(store), under=seen)
    witness(seen).put_if_absent("heads/000002.json", head)
    with pytest.raises(InputError, match="not the head of a registry"):
        check_witness(context(store, seen), read_history(store))
