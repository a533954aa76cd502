"""Proposing a checkpoint, deciding on it, and the alias that follows."""

import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from components.errors import InputError, NoCandidate
from components.files import sha256_tree
from components.registry import (
    Candidate,
    Decision,
    PromotionRecord,
    approve,
    candidates,
    champion,
    find,
    propose,
    records,
)
from components.registry.candidates import PREFIX
from components.registry.directory import DirectoryStore

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "registry")


def checkpoint(path: Path, value: float = 0.0) -> Path:
    path.mkdir()
    save_file({"weight": np.full((2, 2), value, dtype=np.float32)}, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps({"model_type": "qwen3"}))
    (path / "tokenizer.json").write_text("{}")
    return path


def gate(path: Path, result: str = "pass", **other: Any) -> dict[str, Any]:
    return {"result": result, "checks": [], "checkpoint_sha256": sha256_tree(path), "policy_sha256": "c" * 64, **other}


def proposed(store: DirectoryStore, tmp_path: Path, value: float = 0.0, result: str = "pass") -> Candidate:
    path = checkpoint(tmp_path / f"checkpoint-{value}", value)
    return propose(store, path, gate(path, result), {"name": "demo", "seed": 0})


def decide(
    store: DirectoryStore, digest: str, decision: Decision = "approve", by: str = "ada", at: datetime = NOON
) -> PromotionRecord:
    return approve(store, digest, by=by, decision=decision, note="looks right", at=at)


# --- proposing


def test_a_proposed_checkpoint_is_stored_under_its_digest_with_its_evidence(
    store: DirectoryStore, tmp_path: Path
) -> None:
    candidate = proposed(store, tmp_path)
    assert sha256_tree(store.tree(candidate.digest)) == candidate.digest
    assert candidates(store) == [candidate]
    assert candidate.run == {"name": "demo", "seed": 0}
    assert candidate.schema == 1


def test_an_inconclusive_gate_leaves_the_decision_to_a_person(store: DirectoryStore, tmp_path: Path) -> None:
    assert proposed(store, tmp_path, result="inconclusive").gate["result"] == "inconclusive"


@pytest.mark.parametrize("result", ["fail", None, "PASS"])
def test_without_a_passed_gate_nothing_is_proposed(store: DirectoryStore, tmp_path: Path, result: str) -> None:
    with pytest.raises(NoCandidate):
        proposed(store, tmp_path, result=result)
    assert store.keys("") == []
    assert not (tmp_path / "registry" / "trees").exists()


def test_the_gate_must_have_judged_this_checkpoint(store: DirectoryStore, tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "c")
    with pytest.raises(InputError, match="not the one the gate judged"):
        propose(store, path, gate(path, checkpoint_sha256="0" * 64), {})


def test_the_gate_must_name_its_policy(store: DirectoryStore, tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "c")
    with pytest.raises(InputError, match="sha256"):
        propose(store, path, gate(path, policy_sha256=None), {})


def test_a_checkpoint_with_a_pickle_is_not_proposed(store: DirectoryStore, tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "c")
    (path / "optimizer.pt").write_bytes(b"")
    with pytest.raises(InputError, match="pickle"):
        propose(store, path, gate(path), {})


def test_proposing_twice_changes_nothing(store: DirectoryStore, tmp_path: Path) -> None:
    first = proposed(store, tmp_path)
    again = propose(store, tmp_path / "checkpoint-0.0", dict(first.gate), {"name": "nightly"})
    assert again == first
    assert candidates(store) == [first]


def test_a_new_gate_result_replaces_the_evidence_of_a_candidate(store: DirectoryStore, tmp_path: Path) -> None:
    first = proposed(store, tmp_path, result="inconclusive")
    path = tmp_path / "checkpoint-0.0"
    second = propose(store, path, gate(path, policy_sha256="d" * 64), {})
    assert second.digest == first.digest
    assert candidates(store) == [second]


@pytest.mark.parametrize("text", ["{", "[]", '{"digest": "x"}', '{"digest": "x", "gate": 1, "run": {}}'])
def test_a_damaged_candidate_record_is_one_clear_error(store: DirectoryStore, text: str) -> None:
    store.put_if_absent(f"{PREFIX}{'a' * 64}.json", text.encode())
    with pytest.raises(InputError):
        candidates(store)


# --- deciding


def test_an_approval_is_recorded_and_moves_the_alias(store: DirectoryStore, tmp_path: Path) -> None:
    candidate = proposed(store, tmp_path)
    record = decide(store, candidate.digest[:8])
    assert records(store) == [record]
    assert (record.number, record.decision, record.by, record.previous) == (1, "approve", "ada", None)
    assert record.at == "2026-08-01T12:00:00+00:00"
    assert (record.gate, record.policy_sha256) == (candidate.gate, "c" * 64)
    found = champion(store)
    assert found is not None and (found.digest, found.record) == (candidate.digest, 1)


def test_a_rejection_is_recorded_and_leaves_the_alias(store: DirectoryStore, tmp_path: Path) -> None:
    old, new = proposed(store, tmp_path, 0.0), proposed(store, tmp_path, 1.0)
    decide(store, old.digest)
    assert decide(store, new.digest, "reject").number == 2
    found = champion(store)
    assert found is not None and found.digest == old.digest


def test_a_record_names_the_champion_before_it(store: DirectoryStore, tmp_path: Path) -> None:
    digests = [proposed(store, tmp_path, float(value)).digest for value in range(3)]
    assert decide(store, digests[0]).previous is None
    assert decide(store, digests[1], "reject").previous == digests[0]
    assert decide(store, digests[2]).previous == digests[0]


def test_the_same_decision_again_returns_the_first_record(store: DirectoryStore, tmp_path: Path) -> None:
    digest = proposed(store, tmp_path).digest
    first = decide(store, digest)
    assert decide(store, digest, by="bob", at=datetime(2027, 1, 1, tzinfo=UTC)) == first
    assert len(records(store)) == 1


@pytest.mark.parametrize(("first", "second"), [("approve", "reject"), ("reject", "approve")])
def test_a_decision_is_final(store: DirectoryStore, tmp_path: Path, first: Decision, second: Decision) -> None:
    digest = proposed(store, tmp_path).digest
    decide(store, digest, first)
    with pytest.raises(InputError, match=f"already decided: {first} by ada"):
        decide(store, digest, second)


def test_repeating_an_old_approval_does_not_bring_its_checkpoint_back(store: DirectoryStore, tmp_path: Path) -> None:
    old, new = proposed(store, tmp_path, 0.0), proposed(store, tmp_path, 1.0)
    decide(store, old.digest)
    decide(store, new.digest)
    decide(store, old.digest)
    found = champion(store)
    assert found is not None and found.digest == new.digest


@pytest.mark.parametrize(
    ("prefix", "problem"), [("0" * 12, "no such candidate"), ("0", "too short"), ("", "too short")]
)
def test_an_unknown_digest_is_refused(store: DirectoryStore, tmp_path: Path, prefix: str, problem: str) -> None:
    proposed(store, tmp_path)
    with pytest.raises(InputError, match=problem):
        decide(store, prefix)


def test_an_ambiguous_digest_is_refused(store: DirectoryStore) -> None:
    for last in "ab":
        candidate = Candidate("f" * 63 + last, {"result": "pass", "policy_sha256": "c" * 64}, {})
        store.put_if_absent(candidate.key, candidate.to_bytes())
    with pytest.raises(InputError, match="2 candidates"):
        find(store, "ffffffff")
    assert find(store, "f" * 63 + "a").digest.endswith("a")


def test_a_candidate_whose_gate_failed_cannot_be_approved(store: DirectoryStore) -> None:
    candidate = Candidate("f" * 64, {"result": "fail", "policy_sha256": "c" * 64}, {})
    store.put_if_absent(candidate.key, candidate.to_bytes())
    with pytest.raises(NoCandidate, match="gate failed"):
        decide(store, candidate.digest)
    assert records(store) == []


def test_a_checkpoint_that_was_changed_after_it_was_proposed_is_not_approved(
    store: DirectoryStore, tmp_path: Path
) -> None:
    digest = proposed(store, tmp_path).digest
    save_file({"weight": np.ones((2, 2), dtype=np.float32)}, store.tree(digest) / "model.safetensors")
    with pytest.raises(InputError, match="no longer has the digest"):
        decide(store, digest)
    assert records(store) == []
    assert champion(store) is None


def test_a_decision_needs_a_name(store: DirectoryStore, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name of the person"):
        decide(store, proposed(store, tmp_path).digest, by="  ")


def test_a_decision_is_approve_or_reject(store: DirectoryStore, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a decision"):
        decide(store, proposed(store, tmp_path).digest, "y")  # type: ignore[arg-type]


def test_a_decision_has_a_time_with_a_zone(store: DirectoryStore, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="time zone"):
        decide(store, proposed(store, tmp_path).digest, at=NOON.replace(tzinfo=None))


# --- crashes and races


class Crash(BaseException):
    """The process dies here."""


def test_a_crash_between_record_and_alias_is_mended_by_the_same_command(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = proposed(store, tmp_path).digest

    def die(*_: object) -> str:
        raise Crash

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(store, "compare_and_swap", die)
        decide(store, digest)
    assert champion(store) is None
    assert decide(store, digest).number == 1
    found = champion(store)
    assert found is not None and found.digest == digest


def test_a_crash_between_checkpoint_and_candidate_is_mended_by_proposing_again(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = checkpoint(tmp_path / "c")

    def die(*_: object) -> str:
        raise Crash

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(store, "compare_and_swap", die)
        propose(store, path, gate(path), {})
    assert candidates(store) == []
    candidate = propose(store, path, gate(path), {})
    assert candidates(store) == [candidate]


def test_racing_approvals_are_all_numbered_and_the_alias_ends_at_the_last(
    store: DirectoryStore, tmp_path: Path
) -> None:
    digests = [proposed(store, tmp_path, float(value)).digest for value in range(4)]
    barrier = threading.Barrier(8)

    def race(digest: str) -> None:
        barrier.wait()
        decide(store, digest)

    threads = [threading.Thread(target=race, args=(digest,)) for digest in digests for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log = records(store)
    assert [record.number for record in log] == [1, 2, 3, 4]
    assert {record.digest for record in log} == set(digests)
    assert [record.previous for record in log] == [None, *(record.digest for record in log[:-1])]
    found = champion(store)
    assert found is not None and (found.digest, found.record) == (log[-1].digest, 4)


def test_of_two_opposite_decisions_in_a_race_exactly_one_is_made(store: DirectoryStore, tmp_path: Path) -> None:
    digest = proposed(store, tmp_path).digest
    barrier, refused = threading.Barrier(2), []

    def race(decision: Decision) -> None:
        barrier.wait()
        try:
            decide(store, digest, decision)
        except InputError as error:
            refused.append(error.what)

    decisions: tuple[Decision, Decision] = ("approve", "reject")
    threads = [threading.Thread(target=race, args=(decision,)) for decision in decisions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(records(store)) == 1
    assert len(refused) == 1
    assert (champion(store) is not None) == (records(store)[0].decision == "approve")


def test_a_missing_record_is_noticed(store: DirectoryStore, tmp_path: Path) -> None:
    for value in range(2):
        decide(store, proposed(store, tmp_path, float(value)).digest)
    (tmp_path / "registry" / "objects" / "promotions" / "000001.json").unlink()
    with pytest.raises(InputError, match="not numbered"):
        records(store)
