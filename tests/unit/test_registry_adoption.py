"""Policies of a registry: one takes the place of another by a record that the people of both have approved."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from components.config.promotion import Policy
from components.errors import InputError
from components.registry import Approval, NotApproved, PromotionRecord, Store, champion, read_history, sign, state
from components.registry.adoption import adopt, adoption_question
from components.registry.approvals import store_approval
from components.registry.policies import policy_key, store_policy, stored_policy
from flows.governance.policies import problems
from flows.governance.registry import RegistryContext
from tests.unit.deciding import NOON, ONE, TWO_OF_THREE, MemoryStore, approve, approvers, at, key, policy, propose

WITHOUT_LIN = policy(approvers=approvers("ada", "grace"), promote={"approvals": 2, "signed": True})


def stand_for(store: Store, by: str, earlier: Policy, new: Policy, *, signed: bool) -> None:
    """An approval of the new policy, stored."""
    asked = adoption_question(read_history(store), new)
    assert asked.policy == earlier.sha256
    statement = state(asked, by=by, reason="", at=NOON, valid=timedelta(days=7))
    store_approval(store, sign(statement, key(by)) if signed else Approval(statement))


def adopted(store: Store, earlier: Policy, new: Policy, *names: str) -> PromotionRecord:
    """Adopted at noon, signed by these."""
    for name in names:
        stand_for(store, name, earlier, new, signed=True)
    return adopt(store, adoption_question(read_history(store), new), earlier, new, at())


def broken(store: Store, project: Path, present: Policy) -> dict[int, str]:
    return problems(RegistryContext(project, store, present), read_history(store))


@pytest.fixture(autouse=True)
def sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evidence of these candidates is not what is tested here."""
    monkeypatch.setattr("flows.governance.policies.refused_now", lambda *_: "")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_a_policy_is_in_force_from_the_first_record_on_and_stored_with_it(store, tmp_path):
    approve(store, propose(store))
    assert read_history(store).in_force == ONE.sha256
    found = stored_policy(store, ONE.sha256)
    assert found is not None and found.content == ONE.content
    assert not broken(store, tmp_path, ONE)


def test_the_people_of_both_adopt_and_the_champion_stays(store, tmp_path):
    approve(store, first := propose(store))
    assert "not adopted" in broken(store, tmp_path, TWO_OF_THREE)[1]
    record = adopted(store, ONE, TWO_OF_THREE, "ada", "grace")
    assert (record.action, record.outcome, record.number) == ("adopt", "adopted", 2)
    assert champion(store).digest == first.digest
    assert not broken(store, tmp_path, TWO_OF_THREE)
    assert adopt(store, record.approvals[0].statement.question, ONE, TWO_OF_THREE, at()) == record  # once


def test_one_name_is_not_enough_for_a_policy_that_wants_two_signatures(store):
    approve(store, propose(store))
    stand_for(store, "ada", ONE, TWO_OF_THREE, signed=False)
    with pytest.raises(NotApproved, match="0 of 2 approvals"):
        adopt(store, adoption_question(read_history(store), TWO_OF_THREE), ONE, TWO_OF_THREE, at())


def test_a_key_is_dropped_by_the_others_and_no_later_record_counts_it(store, tmp_path):
    approve(store, propose(store))
    adopted(store, ONE, TWO_OF_THREE, "ada", "grace")
    with pytest.raises(NotApproved, match="1 of 2 approvals"):
        adopted(store, TWO_OF_THREE, WITHOUT_LIN, "ada", "lin")
    adopted(store, TWO_OF_THREE, WITHOUT_LIN, "grace")
    assert read_history(store).in_force == WITHOUT_LIN.sha256
    assert not broken(store, tmp_path, WITHOUT_LIN)


def test_nothing_is_decided_by_a_policy_that_was_not_adopted(store):
    approve(store, propose(store))
    with pytest.raises(InputError, match="goes by the policy") as caught:
        approve(store, propose(store, 1.0), under=policy(valid_days=10))
    assert "evenkeel adopt-policy --by YOUR-NAME;" in caught.value.how
    with pytest.raises(InputError, match="goes by the policy") as caught:
        approve(store, propose(store, 1.0), under=WITHOUT_LIN)
    assert "evenkeel adopt-policy --by YOUR-NAME --key YOUR-KEY;" in caught.value.how


def test_a_weaker_policy_takes_those_of_the_one_in_force(store):
    approve(store, propose(store))
    adopted(store, ONE, TWO_OF_THREE, "ada", "grace")
    stand_for(store, "mallory", TWO_OF_THREE, ONE, signed=False)
    with pytest.raises(NotApproved, match="0 of 2 approvals"):
        adopt(store, adoption_question(read_history(store), ONE), TWO_OF_THREE, ONE, at())


def test_where_nothing_was_decided_nothing_is_adopted(store):
    with pytest.raises(InputError, match="no policy is in force"):
        adoption_question(read_history(store), ONE)


def test_what_was_decided_meanwhile_was_not_agreed_to(store):
    approve(store, propose(store))
    stand_for(store, "ada", ONE, WITHOUT_LIN, signed=True)
    stand_for(store, "grace", ONE, WITHOUT_LIN, signed=True)
    asked = adoption_question(read_history(store), WITHOUT_LIN)
    approve(store, propose(store, 1.0))
    with pytest.raises(InputError, match="something was decided meanwhile"):
        adopt(store, asked, ONE, WITHOUT_LIN, at())


# Whoever can write to the store, and has no key


def forged(store: Store, **changes: Any) -> None:
    """One more record, with one unsigned approval by a name."""
    history = read_history(store)
    about = {"action": "promote", "base": history.base, "policy": ONE.sha256, **changes}
    gate = {"gate": None} if about["action"] == "adopt" else {}
    statement = replace(history.records[0].approvals[0].statement, **about, **gate)
    record = replace(
        history.records[0],
        number=len(history.records) + 1,
        previous=history.champion.digest,
        before=history.head,
        approvals=(Approval(statement),),
        outcome="adopted" if about["action"] == "adopt" else "promoted",
        **{name: value for name, value in about.items() if name != "policy"},
        policy_sha256=about["policy"],
    )
    store.put_if_absent(record.key, record.to_bytes())


def test_a_record_of_the_time_before_signatures_cannot_be_written_later(store):
    approve(store, propose(store))
    adopted(store, ONE, TWO_OF_THREE, "ada", "grace")
    other = propose(store, 1.0)
    forged(store, digest=other.digest, evidence=other.evidence, at="2020-01-01T00:00:00+00:00")
    with pytest.raises(InputError, match="another policy than the one in force"):
        read_history(store)


def test_nor_where_the_stricter_policy_was_not_adopted_yet(store, tmp_path):
    approve(store, propose(store))
    other = propose(store, 1.0)
    forged(store, digest=other.digest, evidence=other.evidence)
    assert "not adopted" in broken(store, tmp_path, TWO_OF_THREE)[2]


def test_a_policy_that_was_put_into_the_store_has_no_force(store, tmp_path):
    strict = policy(approvers=approvers("ada", "grace"), promote={"approvals": 2, "signed": True}, valid_days=10)
    adopted_from = propose(store)
    approve(store, adopted_from)
    adopted(store, ONE, strict, "ada", "grace")
    history, weak = read_history(store), policy(valid_days=9)
    store_policy(store, weak)
    forged(store, action="adopt", digest=weak.sha256, evidence=history.head, policy=strict.sha256)
    found = broken(store, tmp_path, strict)
    assert "0 of 2 approvals" in found[3]
    assert "goes by the policy" in found[1]


def test_a_log_that_is_written_again_from_its_start_lacks_the_signatures_of_the_adoption(store, tmp_path):
    approve(store, propose(store))
    history = read_history(store)
    forged(store, action="adopt", digest=TWO_OF_THREE.sha256, evidence=history.head)
    found = broken(store, tmp_path, TWO_OF_THREE)
    assert "0 of 2 approvals" in found[2] and "record 2" in found[1]


def test_an_adoption_is_of_the_records_before_it_and_no_others(store):
    approve(store, propose(store))
    forged(store, action="adopt", digest=TWO_OF_THREE.sha256, evidence="ab" * 32)
    with pytest.raises(InputError, match="other records than those before it"):
        read_history(store)


def test_a_stored_policy_that_was_changed_is_refused(store):
    approve(store, propose(store))
    store.objects[policy_key(ONE.sha256)] = b"{}"
    with pytest.raises(InputError, match="a stored policy was changed"):
        stored_policy(store, ONE.sha256)
