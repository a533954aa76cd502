"""From approvals to records: promote, reject, roll back, and every way around them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from components.errors import InputError, NoCandidate
from components.registry import (
    Alias,
    Approval,
    Candidate,
    NotApproved,
    challenge,
    challenger,
    champion,
    promote,
    read_history,
    records,
    reject,
    rollback,
    rollback_question,
    state,
    store_approval,
)
from components.registry.aliases import CHAMPION
from components.registry.directory import DirectoryStore
from components.registry.records import record_key
from components.registry.rollback import target
from components.types import GateCheck
from tests.unit.deciding import (
    NOON,
    ONE,
    TWO_OF_THREE,
    MemoryStore,
    approval,
    approve,
    approvers,
    at,
    go_back,
    judgement,
    policy,
    propose,
    turn_down,
)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def standing_champion(store: MemoryStore) -> tuple[str, int]:
    found = champion(store)
    assert found is not None
    alias = json.loads(store.objects[CHAMPION])
    assert (alias["digest"], alias["record"]) == (found.digest, found.record)
    return found.digest, found.record


# --- promoting


def test_an_approval_becomes_a_record_and_moves_the_alias(store: MemoryStore) -> None:
    candidate = propose(store, evidence=None)
    record = approve(store, candidate)
    assert records(store) == [record]
    assert (record.number, record.action, record.outcome, record.by) == (1, "promote", "promoted", "ada")
    assert (record.previous, record.base, record.before) == (None, 0, None)
    assert (record.at, record.reason) == ("2026-08-01T12:00:00+00:00", "looks right")
    assert [check["name"] for check in record.gate["checks"]] == ["held-out gain", "triage"]
    assert record.policy_sha256 == ONE.sha256
    assert standing_champion(store) == (candidate.digest, 1)


def test_a_record_names_the_champion_and_the_record_before_it(store: MemoryStore) -> None:
    first, second = (propose(store, value) for value in (0.0, 1.0))
    approve(store, first)
    record = approve(store, second)
    assert (record.previous, record.base) == (first.digest, 1)
    assert record.before is not None and record.before == read_history(store).champions[0].sha256


def test_without_enough_approvals_nothing_is_recorded_and_what_is_missing_is_said(store: MemoryStore) -> None:
    candidate = propose(store)
    with pytest.raises(NotApproved, match="1 of 2 approvals: ada") as caught:
        approve(store, candidate, "ada", TWO_OF_THREE, signed=True)
    assert caught.value.exit_code == 3
    assert caught.value.standing.missing == 1
    assert f"evenkeel approve {candidate.digest[:12]}" in str(caught.value)
    assert records(store) == [] and champion(store) is None
    assert approve(store, candidate, "grace", TWO_OF_THREE, signed=True).by == "ada, grace"


def test_the_same_promotion_again_is_the_same_record(store: MemoryStore) -> None:
    candidate = propose(store)
    first = approve(store, candidate)
    assert approve(store, candidate, "bob") == first
    assert len(records(store)) == 1


def test_repeating_an_old_promotion_does_not_bring_its_checkpoint_back(store: MemoryStore) -> None:
    old, new = (propose(store, value) for value in (0.0, 1.0))
    first = approve(store, old)
    approve(store, new)
    assert promote(store, old, judgement(store, old), ONE, at()) == first
    assert standing_champion(store) == (new.digest, 2)


def test_a_promotion_against_a_champion_that_is_gone_is_recorded_as_superseded(store: MemoryStore) -> None:
    first, second = (propose(store, value) for value in (0.0, 1.0))
    late = judgement(store, second)
    store_approval(store, approval(store, second))
    approve(store, first)
    record = promote(store, second, late, ONE, at())
    assert (record.outcome, record.base, record.previous) == ("superseded", 0, first.digest)
    assert promote(store, second, late, ONE, at()) == record
    assert standing_champion(store) == (first.digest, 1)


def test_a_superseded_candidate_can_be_judged_and_approved_again(store: MemoryStore) -> None:
    first, second = (propose(store, value) for value in (0.0, 1.0))
    late = judgement(store, second)
    store_approval(store, approval(store, second))
    approve(store, first)
    promote(store, second, late, ONE, at())
    with pytest.raises(NotApproved, match="stands on record 1 now"):
        promote(store, second, judgement(store, second), ONE, at())
    assert approve(store, second).outcome == "promoted"
    assert standing_champion(store) == (second.digest, 3)


def test_new_evidence_for_the_champion_does_not_promote_it_again(store: MemoryStore) -> None:
    candidate = propose(store)
    first = approve(store, candidate)
    again = replace(candidate, evidence=candidate.digest)
    assert promote(store, again, judgement(store, again), ONE, at()) == first


def test_evidence_is_not_read_again_because_somebody_else_was_first(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "report.html").write_text("")
    candidate, others = propose(store, evidence=store.put_tree(tmp_path)), [propose(store, 1.0)]
    put, tree, read = store.put_if_absent, store.tree, []

    def late(key: str, data: bytes) -> bool:
        if key == record_key(1) and others:
            turn_down(store, others.pop())
        return put(key, data)

    monkeypatch.setattr(store, "put_if_absent", late)
    monkeypatch.setattr(store, "tree", lambda digest: read.append(digest) or tree(digest))
    assert approve(store, candidate).number == 2
    assert read.count(candidate.evidence) == 2, "whether it is whole, and who started the run"


def test_a_rejection_that_arrives_during_a_promotion_outlives_the_approvals_of_before(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "report.html").write_text("")
    candidate = propose(store, evidence=store.put_tree(tmp_path))
    (tmp_path / "report.html").write_text("other")
    again = [replace(candidate, evidence=store.put_tree(tmp_path))]
    put = store.put_if_absent

    def late(key: str, data: bytes) -> bool:
        if key == record_key(1) and again:
            turn_down(store, again.pop())
        return put(key, data)

    monkeypatch.setattr(store, "put_if_absent", late)
    with pytest.raises(NotApproved):
        approve(store, candidate)


# --- the gate


def check(result: Any = "pass", evidence: str = "fine") -> GateCheck:
    return GateCheck("held-out gain", result, evidence)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"result": "fail"}, "gate failed"),
        ({"result": "pass", "checks": (check("fail", "-3.0 points"),)}, "held-out gain: fail: -3.0 points"),
        ({"result": None}, "gate failed"),
        ({"checks": ()}, "a missing check is a fail"),
        ({"result": "pass", "checks": (check("inconclusive"),)}, "not all of its checks do"),
    ],
)
def test_what_the_gate_does_not_let_pass_is_not_promoted(
    store: MemoryStore, changes: dict[str, Any], said: str
) -> None:
    candidate = propose(store)
    store_approval(store, approval(store, candidate))
    with pytest.raises(NoCandidate, match=said) as caught:
        promote(store, candidate, judgement(store, candidate, **changes), ONE, at())
    assert caught.value.how and "no approval changes that" in caught.value.how
    assert records(store) == []


def test_words_of_a_person_about_a_figure_are_no_figure(store: MemoryStore) -> None:
    candidate = propose(store)
    checks = (check("inconclusive", "refused (...), overridden: the KL was inf at step 0, reward variance nan"),)
    doubtful = judgement(store, candidate, result="inconclusive", checks=checks)
    store_approval(store, approval(store, candidate, judged=doubtful))
    assert promote(store, candidate, doubtful, ONE, at()).outcome == "promoted"


@pytest.mark.parametrize("changes", [{"policy_sha256": "d" * 64}, {"evidence": "e" * 64}])
def test_a_judgement_of_something_else_is_refused(store: MemoryStore, changes: dict[str, Any]) -> None:
    candidate = propose(store)
    store_approval(store, approval(store, candidate))
    with pytest.raises(InputError, match="not one of this candidate's evidence by the present policy"):
        promote(store, candidate, judgement(store, candidate, **changes), ONE, at())


def test_an_inconclusive_gate_is_for_a_person_who_says_why(store: MemoryStore) -> None:
    candidate = propose(store)
    doubtful = judgement(store, candidate, result="inconclusive")
    store_approval(store, approval(store, candidate, reason="", judged=doubtful))
    with pytest.raises(NotApproved, match="inconclusive and it gives no reason"):
        promote(store, candidate, doubtful, ONE, at())
    store_approval(store, approval(store, candidate, reason="read the responses", judged=doubtful))
    assert promote(store, candidate, doubtful, ONE, at()).reason == "read the responses"


@pytest.mark.parametrize("lost", ["checkpoint", "evidence"])
def test_a_checkpoint_or_evidence_that_is_not_stored_is_none(store: MemoryStore, lost: str) -> None:
    candidate = propose(store, evidence="e" * 64 if lost == "evidence" else None)
    if lost == "checkpoint":
        store.trees.clear()
    with pytest.raises(InputError, match="no such checkpoint"):
        approve(store, candidate)
    assert records(store) == []


def test_a_checkpoint_that_was_changed_in_its_store_is_not_promoted(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "registry")
    candidate = propose(store)
    (store.tree(candidate.digest) / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(InputError, match="no longer has the digest"):
        approve(store, candidate)
    assert records(store) == [] and champion(store) is None


def test_where_something_else_lies_in_the_place_of_the_next_record_nothing_is_decided(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "registry")
    place = tmp_path / "registry/objects" / record_key(1)
    candidate = propose(store)
    place.mkdir(parents=True)
    with pytest.raises(InputError, match="in the place of the next record") as caught:
        approve(store, candidate)
    assert (caught.value.where, records(store)) == (record_key(1), [])
    place.rmdir()
    assert approve(store, candidate).outcome == "promoted"


# --- ways around it


def test_a_policy_that_was_swapped_after_the_approval_is_not_enough(store: MemoryStore) -> None:
    candidate = propose(store)
    with pytest.raises(NotApproved):
        approve(store, candidate, "ada", TWO_OF_THREE, signed=True)
    weaker = policy(approvers=approvers("ada", "grace", "lin"), promote={"approvals": 1, "signed": True})
    with pytest.raises(NotApproved, match="the policy was another when it was given; approve again"):
        promote(store, candidate, judgement(store, candidate, weaker), weaker, at())


def test_an_approval_that_was_replayed_after_a_roll_back_promotes_nothing(store: MemoryStore) -> None:
    good, bad, third = (propose(store, value) for value in (0.0, 1.0, 2.0))
    approve(store, good)
    replayed = approval(store, third)
    approve(store, bad)
    go_back(store)
    store_approval(store, replayed)
    with pytest.raises(NotApproved, match="stood on record 1 when it was given and stands on record 3 now"):
        promote(store, third, judgement(store, third), ONE, at())
    promote(store, bad, judgement(store, bad), ONE, at())
    assert standing_champion(store) == (good.digest, 3)


def test_an_approval_for_another_checkpoint_cannot_even_be_filed_under_this_one(store: MemoryStore) -> None:
    one, other = (propose(store, value) for value in (0.0, 1.0))
    made = approval(store, other)
    store.objects[made.stored_under.replace(other.digest, one.digest)] = made.to_bytes()
    with pytest.raises(InputError, match="stored approval was changed"):
        promote(store, one, judgement(store, one), ONE, at())


def test_with_a_clock_that_was_set_back_nothing_is_decided(store: MemoryStore) -> None:
    one, other = (propose(store, value) for value in (0.0, 1.0))
    approve(store, one)
    store_approval(store, approval(store, other))
    for decide in (promote, reject):
        with pytest.raises(InputError, match="clock says 2026-07-31T12:00:00") as caught:
            decide(store, other, judgement(store, other), ONE, at(days=-1))
        assert caught.value.where == "the clock" and caught.value.how
    assert len(records(store)) == 1


def test_one_decision_by_a_clock_that_was_ahead_can_be_undone_as_the_message_says(store: MemoryStore) -> None:
    one, other = (propose(store, value) for value in (0.0, 1.0))
    approve(store, one)
    ahead = approval(store, other, made=at(days=365)())
    store_approval(store, ahead)
    promote(store, other, judgement(store, other), ONE, at(days=365))
    third = propose(store, 2.0)
    with pytest.raises(InputError, match="record 2 was written at 2027-08-01") as caught:
        approve(store, third)
    assert record_key(2) in str(caught.value.how) and CHAMPION in str(caught.value.how)
    for key in (record_key(2), CHAMPION):
        del store.objects[key]
    assert approve(store, third).outcome == "promoted"
    assert standing_champion(store) == (third.digest, 2)


def test_a_clock_that_is_set_back_revives_no_expired_approval(store: MemoryStore) -> None:
    candidate = propose(store)
    store_approval(store, approval(store, candidate, days=1))
    with pytest.raises(NotApproved, match="expired at"):
        promote(store, candidate, judgement(store, candidate), ONE, at(days=2))
    with pytest.raises(NotApproved, match="not valid before"):
        promote(store, candidate, judgement(store, candidate), ONE, at(days=-1))


GRANTED = ("DEPLOY_APPROVAL", "APPROVE", "APPROVED")
OWN = ("POLICY", "PROMOTION", "QUORUM", "APPROVALS", "SKIP_GATE", "FORCE", "NOW", "DEBUG")
OTHERS = ("PREFECT_APPROVALS", "PREFECT_TEST_MODE", "PREFECT_FLOW_RUN_NAME", "SOURCE_DATE_EPOCH", "CI", "USER")
VARIABLES = [f"{prefix}{name}" for prefix in ("", "EVENKEEL_", "PREFECT_") for name in GRANTED]
VARIABLES += [*(f"EVENKEEL_{name}" for name in OWN), *OTHERS]


def test_no_variable_of_the_environment_decides_anything(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        for value in ("y", "1", "true"):
            monkeypatch.setenv(name, value)
        candidate = propose(store)
        with pytest.raises(NotApproved, match="0 of 1 approvals"):
            promote(store, candidate, judgement(store, candidate), ONE, at())
        failed = judgement(store, candidate, result="fail")
        with pytest.raises(NoCandidate, match="gate failed"):
            promote(store, candidate, failed, ONE, at())


def test_the_registry_reads_no_variable_of_the_environment() -> None:
    """But for boto3, which finds its credentials there."""
    from tests.code_graph import ROOT

    for file in (*ROOT.glob("components/registry/*.py"), ROOT / "components/config/promotion.py"):
        if not file.name.startswith("s3"):
            text = file.read_text(encoding="utf-8")
            assert "environ" not in text and "getenv" not in text, file


# --- rejecting


def test_a_rejection_is_recorded_and_leaves_the_champion(store: MemoryStore) -> None:
    old, new = (propose(store, value) for value in (0.0, 1.0))
    approve(store, old)
    record = turn_down(store, new)
    assert (record.number, record.outcome, record.by, record.previous) == (2, "rejected", "bob", old.digest)
    assert turn_down(store, new, "eve") == record
    assert standing_champion(store) == (old.digest, 1)


def test_a_rejection_is_final_for_its_evidence_and_for_no_other(store: MemoryStore) -> None:
    candidate = propose(store)
    turn_down(store, candidate)
    with pytest.raises(InputError, match=r"already decided: rejected by bob \(record 1\)"):
        approve(store, candidate)
    later = NOON + timedelta(seconds=1)
    assert approve(store, replace(candidate, evidence=candidate.digest), made=later).outcome == "promoted"


def test_no_approval_of_before_a_rejection_counts_on_other_evidence(store: MemoryStore) -> None:
    candidate = propose(store)
    again = replace(candidate, evidence=candidate.digest)
    store_approval(store, approval(store, again))
    turn_down(store, candidate)
    with pytest.raises(NotApproved, match="the checkpoint was rejected since"):
        promote(store, again, judgement(store, again), ONE, at())


def test_what_was_promoted_is_not_rejected_any_more(store: MemoryStore) -> None:
    candidate = propose(store)
    approve(store, candidate)
    with pytest.raises(InputError, match="already decided: promoted by ada") as caught:
        turn_down(store, candidate)
    assert "evenkeel rollback" in str(caught.value)
    assert len(records(store)) == 1


def test_a_rejection_that_was_stated_and_not_recorded_comes_before_any_approval(store: MemoryStore) -> None:
    candidate = propose(store)
    store_approval(store, approval(store, candidate, "bob", action="reject"))
    with pytest.raises(InputError, match="rejected by bob"):
        approve(store, candidate)
    assert [record.outcome for record in records(store)] == ["rejected"]
    assert champion(store) is None


def test_who_may_not_approve_may_not_reject_either(store: MemoryStore) -> None:
    candidate = propose(store)
    with pytest.raises(NotApproved, match="lists other approvers"):
        turn_down(store, candidate, "eve", TWO_OF_THREE)
    with pytest.raises(NotApproved, match="not signed"):
        turn_down(store, candidate, "ada", TWO_OF_THREE)
    assert turn_down(store, candidate, "lin", TWO_OF_THREE, signed=True).by == "lin"  # the run's starter


# --- rolling back


def three_champions(store: MemoryStore) -> list[str]:
    found = [propose(store, float(value)) for value in range(3)]
    for candidate in found:
        approve(store, candidate)
    return [candidate.digest for candidate in found]


def test_a_roll_back_goes_to_the_champion_before_and_is_a_record(store: MemoryStore) -> None:
    _, second, third = three_champions(store)
    record = go_back(store)
    assert (record.outcome, record.digest, record.previous, record.base) == ("rolled back", second, third, 3)
    assert [check["name"] for check in record.gate["checks"]] == ["stored checkpoint", "was the champion"]
    assert record.reason == "users complain"
    assert standing_champion(store) == (second, 4)


def test_going_back_twice_goes_back_further_and_not_to_and_fro(store: MemoryStore) -> None:
    first, _, _ = three_champions(store)
    go_back(store)
    assert go_back(store).digest == first
    with pytest.raises(InputError, match="no champion came before the present one") as caught:
        go_back(store)
    assert "--to" in str(caught.value)


@pytest.mark.parametrize("to", [lambda digest: digest, lambda digest: digest[:8], lambda digest: "1"])
def test_a_roll_back_goes_to_any_champion_by_digest_or_record(store: MemoryStore, to: Callable[[str], str]) -> None:
    first, _, third = three_champions(store)
    assert go_back(store, to(first)).digest == first
    assert go_back(store, third).digest == third  # forward again


@pytest.mark.parametrize("to", ["9", "abcdef0123", "ab", "", "²"])
def test_what_never_was_the_champion_cannot_be_gone_back_to(store: MemoryStore, to: str) -> None:
    approve(store, propose(store))
    with pytest.raises(InputError, match=r"never was the champion|no champion came before"):
        go_back(store, to)
    assert len(records(store)) == 1


def test_without_a_champion_there_is_nothing_to_go_back_from(store: MemoryStore) -> None:
    with pytest.raises(InputError, match="there is no champion"):
        go_back(store)


def test_the_present_champion_is_not_gone_back_to(store: MemoryStore) -> None:
    _, _, third = three_champions(store)
    with pytest.raises(InputError, match="is the champion already"):
        go_back(store, third)


def test_a_roll_back_needs_a_reason(store: MemoryStore) -> None:
    three_champions(store)
    history = read_history(store)
    asked = rollback_question(history, target(history), ONE)
    silent = state(asked, by="ada", reason="", at=NOON, valid=timedelta(days=7))
    store_approval(store, Approval(silent))
    with pytest.raises(NotApproved, match="needs one"):
        rollback(store, asked, ONE, at())


def test_a_roll_back_has_a_quorum_of_its_own(store: MemoryStore) -> None:
    for value in range(2):
        candidate = propose(store, float(value))
        with pytest.raises(NotApproved):
            approve(store, candidate, "ada", TWO_OF_THREE, signed=True)
        approve(store, candidate, "grace", TWO_OF_THREE, signed=True)
    with pytest.raises(NotApproved, match="not signed"):
        go_back(store, under=TWO_OF_THREE)
    assert go_back(store, by="lin", under=TWO_OF_THREE, signed=True).by == "lin"


def test_an_approval_to_promote_is_none_to_roll_back(store: MemoryStore) -> None:
    first, _, _ = three_champions(store)
    history = read_history(store)
    asked = rollback_question(history, target(history, first), ONE)
    with pytest.raises(NotApproved, match="0 of 1"):
        rollback(store, asked, ONE, at())


def test_a_roll_back_asked_for_before_another_champion_came_is_superseded(store: MemoryStore) -> None:
    three_champions(store)
    history = read_history(store)
    asked = rollback_question(history, target(history), ONE)
    statement = state(asked, by="ada", reason="users complain", at=NOON, valid=timedelta(days=7))
    store_approval(store, Approval(statement))
    newest = propose(store, 7.0)
    approve(store, newest)
    record = rollback(store, asked, ONE, at())
    assert record.outcome == "superseded"
    assert rollback(store, asked, ONE, at()) == record
    assert standing_champion(store) == (newest.digest, 4)


def test_a_damaged_checkpoint_is_not_gone_back_to(store: MemoryStore) -> None:
    _, second, _ = three_champions(store)
    store.trees.discard(second)
    with pytest.raises(InputError, match="no such checkpoint"):
        go_back(store)
    assert len(records(store)) == 3


@pytest.mark.parametrize("decide", [lambda store, _: go_back(store), approve], ids=["roll-back", "promotion"])
def test_a_checkpoint_with_what_none_may_have_is_not_made_the_champion(
    tmp_path: Path, decide: Callable[[DirectoryStore, Candidate], object]
) -> None:
    store = DirectoryStore(tmp_path / "registry")
    first, second, third = (propose(store, value) for value in (0.0, 1.0, 2.0))
    approve(store, first)
    approve(store, second)
    for candidate in (first, third):
        (store.tree(candidate.digest) / "config.json").chmod(0o755)
    with pytest.raises(InputError, match="an executable file"):
        decide(store, third)
    assert len(records(store)) == 2


# --- the challenger


def test_the_challenger_is_the_newest_candidate(store: MemoryStore) -> None:
    assert challenger(store) is None
    for value in (0.0, 1.0):
        challenge(store, propose(store, value).digest)
    assert challenger(store) == Alias(propose(store, 1.0).digest, 0)
