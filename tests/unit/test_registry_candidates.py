"""Proposing a checkpoint: it is stored with its evidence, once, and recorded as a candidate."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from components.errors import InputError, NoCandidate
from components.files import dump_json, read_json, sha256_tree, write_json, write_text
from components.layout import Layout
from components.registry import Candidate, candidates, challenger, find, propose
from components.registry.aliases import CHALLENGER
from components.registry.candidates import PREFIX
from components.registry.directory import DirectoryStore

WITHOUT_POLICY = {"digest": "a" * 64, "gate": {"result": "pass"}, "run": {}, "schema": 2, "evidence": None}


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


def evidence(path: Path, text: str = "what the run left") -> Path:
    """A folder of evidence next to a checkpoint."""
    folder = path.with_name(f"{path.name}-evidence-{len(text)}")
    folder.mkdir(exist_ok=True)
    (folder / "report.html").write_text(text)
    return folder


def proposed(store: DirectoryStore, tmp_path: Path, value: float = 0.0, result: str = "pass") -> Candidate:
    path = checkpoint(tmp_path / f"checkpoint-{value}", value)
    return propose(store, path, evidence(path), gate(path, result), {"name": "demo", "seed": 0})


def test_a_proposed_checkpoint_is_stored_under_its_digest_with_its_evidence(
    store: DirectoryStore, tmp_path: Path
) -> None:
    candidate = proposed(store, tmp_path)
    assert sha256_tree(store.tree(candidate.digest)) == candidate.digest
    assert candidates(store) == [candidate]
    assert candidate.run == {"name": "demo", "seed": 0}
    assert candidate.evidence is not None
    assert (store.tree(candidate.evidence) / "report.html").read_text() == "what the run left"
    assert candidate.schema == 2


def test_an_inconclusive_gate_leaves_the_decision_to_a_person(store: DirectoryStore, tmp_path: Path) -> None:
    assert proposed(store, tmp_path, result="inconclusive").gate["result"] == "inconclusive"


@pytest.mark.parametrize("result", ["fail", None, "PASS"])
def test_without_a_passed_gate_nothing_is_proposed(store: DirectoryStore, tmp_path: Path, result: str) -> None:
    with pytest.raises(NoCandidate):
        proposed(store, tmp_path, result=result)
    assert store.keys("") == []
    assert not (tmp_path / "registry" / "trees").exists()


@pytest.mark.parametrize(
    ("judged", "pickle", "problem"),
    [
        ({"checkpoint_sha256": "0" * 64}, False, "not the one the gate judged"),
        ({"policy_sha256": None}, False, "sha256"),
        ({}, True, "pickle"),
    ],
)
def test_the_gate_must_have_judged_this_checkpoint_by_a_policy_and_it_must_be_harmless(
    store: DirectoryStore, tmp_path: Path, judged: dict[str, Any], pickle: bool, problem: str
) -> None:
    path = checkpoint(tmp_path / "c")
    if pickle:
        (path / "optimizer.pt").write_bytes(b"")
    with pytest.raises(InputError, match=problem):
        propose(store, path, evidence(path), gate(path, **judged), {})


def test_proposing_twice_changes_nothing(store: DirectoryStore, tmp_path: Path) -> None:
    first, path = proposed(store, tmp_path), tmp_path / "checkpoint-0.0"
    again = propose(store, path, evidence(path), dict(first.gate), {"name": "nightly"})
    assert again == first
    assert candidates(store) == [first]


def test_a_new_gate_result_replaces_the_evidence_of_a_candidate(store: DirectoryStore, tmp_path: Path) -> None:
    first = proposed(store, tmp_path, result="inconclusive")
    path = tmp_path / "checkpoint-0.0"
    second = propose(store, path, evidence(path), gate(path, policy_sha256="d" * 64), {})
    assert second.digest == first.digest
    assert candidates(store) == [second]


def test_other_evidence_replaces_that_of_a_candidate(store: DirectoryStore, tmp_path: Path) -> None:
    first, path = proposed(store, tmp_path), tmp_path / "checkpoint-0.0"
    second = propose(store, path, evidence(path, "something else"), dict(first.gate), {})
    assert second.evidence != first.evidence
    assert candidates(store) == [second]


def started(store: DirectoryStore, path: Path, by: Any, text: str) -> Any:
    return propose(store, path, evidence(path, text), gate(path), {"started_by": by}).run["started_by"]


def test_what_is_proposed_again_takes_the_place_of_no_newer_challenger(store: DirectoryStore, tmp_path: Path) -> None:
    paths = [checkpoint(tmp_path / f"checkpoint-{value}", value) for value in (0.0, 1.0)]

    def challenging(path: Path, **by: Any) -> bool:
        """Whether the checkpoint is the challenger once it was proposed."""
        digest, found = propose(store, path, evidence(path), gate(path, **by), {}).digest, challenger(store)
        return found is not None and found.digest == digest

    assert [challenging(path) for path in (*paths, paths[0])] == [True, True, False]
    assert challenging(paths[0], policy_sha256="d" * 64)  # of another gate
    assert not challenging(paths[1])
    (tmp_path / "registry/objects" / CHALLENGER).unlink()
    assert challenging(paths[1])


def test_who_proposes_again_does_not_become_the_only_one_who_started_it(store: DirectoryStore, tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "c")
    assert started(store, path, ["ada"], "one") == ["ada"]
    assert started(store, path, ["bob"], "three") == ["ada", "bob"]


@pytest.mark.parametrize("first", [[], None])
def test_a_starter_who_is_not_known_does_not_become_known_later(
    store: DirectoryStore, tmp_path: Path, first: Any
) -> None:
    path = checkpoint(tmp_path / "c")
    started(store, path, first, "one")
    assert started(store, path, ["bob"], "three") == []


def with_lineage(path: Path, **lineage: Any) -> Path:
    """Evidence with this lineage."""
    folder = evidence(path)
    write_json(Layout(folder).lineage, {"run": "demo", "commit": "1" * 40, **lineage})
    return folder


@pytest.mark.parametrize(
    ("again", "everybody"), [(["ada", "bob"], ["ada", "bob"]), (["bob"], ["ada", "bob"]), ([], [])]
)
def test_where_only_who_started_it_differs_the_evidence_stays_and_they_are_added(
    store: DirectoryStore, tmp_path: Path, again: list[str], everybody: list[str]
) -> None:
    path = checkpoint(tmp_path / "c")
    first, second, third = (
        propose(store, path, with_lineage(path, started_by=by), gate(path), {"run": "demo", "started_by": by})
        for by in (["ada"], again, ["ada"])
    )
    assert second == replace(first, run={"run": "demo", "started_by": everybody}) == third
    assert candidates(store) == [second]
    assert len(list((tmp_path / "registry/trees").iterdir())) == 2, "the checkpoint and one folder of evidence"


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"started_by": ["ada"]}, {"started_by": ["ada", "bob"], "commit": "2" * 40}),
        ({"started_by": ["ada"], "committed": False}, {"started_by": ["bob"], "committed": True}),
        ({"started_by": ["ada"]}, {"started_by": ["ada"], "packages_sha256": "3" * 64}),
    ],
)
def test_where_anything_else_of_where_it_comes_from_differs_it_is_other_evidence(
    store: DirectoryStore, tmp_path: Path, before: dict[str, Any], now: dict[str, Any]
) -> None:
    path = checkpoint(tmp_path / "c")
    first, second = (propose(store, path, with_lineage(path, **said), gate(path), said) for said in (before, now))
    assert first.evidence != second.evidence and candidates(store) == [second]


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_lineage_that_cannot_be_read_is_like_any_other_file(store: DirectoryStore, tmp_path: Path, text: str) -> None:
    path = checkpoint(tmp_path / "c")
    first = propose(store, path, with_lineage(path), gate(path), {})
    write_text(Layout(evidence(path)).lineage, text)
    for _ in range(2):
        assert propose(store, path, evidence(path), gate(path), {}).evidence not in (None, first.evidence)


def test_of_two_who_propose_at_once_both_have_started_it(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = checkpoint(tmp_path / "c")
    swap = store.compare_and_swap

    def late(*written: Any) -> str:
        monkeypatch.setattr(store, "compare_and_swap", swap)
        propose(store, path, with_lineage(path, started_by=["ada"]), gate(path), {"started_by": ["ada"]})
        with_lineage(path, started_by=["bob"])
        return swap(*written)

    monkeypatch.setattr(store, "compare_and_swap", late)
    second = propose(store, path, with_lineage(path, started_by=["bob"]), gate(path), {"started_by": ["bob"]})
    assert second.run["started_by"] == ["ada", "bob"] and second.evidence is not None
    assert read_json(Layout(store.tree(second.evidence)).lineage)["started_by"] == ["ada"]


def test_a_record_of_schema_1_is_still_read_and_keeps_its_bytes(store: DirectoryStore) -> None:
    old = {"digest": "f" * 64, "gate": {"policy_sha256": "c" * 64, "result": "pass"}, "run": {"run": "x"}, "schema": 1}
    data = dump_json(old).encode()
    store.put_if_absent(f"{PREFIX}{'f' * 64}.json", data)
    found = candidates(store)[0]
    assert (found.schema, found.evidence, found.to_bytes()) == (1, None, data)


def test_a_record_of_a_later_schema_is_one_clear_error(store: DirectoryStore) -> None:
    new = {"digest": "f" * 64, "gate": {"policy_sha256": "c" * 64}, "run": {}, "schema": 3}
    store.put_if_absent(f"{PREFIX}{'f' * 64}.json", dump_json(new).encode())
    with pytest.raises(InputError, match="schema 3 is not known"):
        candidates(store)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"digest": "x"}', '{"digest": "x", "gate": 1, "run": {}}', dump_json(WITHOUT_POLICY)]
)
def test_a_damaged_candidate_record_is_one_clear_error(store: DirectoryStore, text: str) -> None:
    key = f"{PREFIX}{'a' * 64}.json"
    store.put_if_absent(key, text.encode())
    with pytest.raises(InputError, match="not a candidate record: ") as caught:
        candidates(store)
    assert caught.value.where == key


def test_what_the_error_of_a_damaged_alias_advises_works(store: DirectoryStore, tmp_path: Path) -> None:
    proposed(store, tmp_path)
    (alias := tmp_path / "registry" / "objects" / CHALLENGER).write_text("{")
    with pytest.raises(InputError, match=r"remove the alias, which .* the next candidate whose gate passes, puts back"):
        proposed(store, tmp_path, 1.0)
    alias.unlink()
    newest = proposed(store, tmp_path, 2.0)
    found = challenger(store)
    assert found is not None and found.digest == newest.digest


def test_what_the_error_of_a_damaged_record_advises_works(store: DirectoryStore, tmp_path: Path) -> None:
    before = proposed(store, tmp_path)
    (record := tmp_path / "registry" / "objects" / before.key).write_text("{")
    path = tmp_path / "checkpoint-0.0"
    again = evidence(path), gate(path), {"name": "demo", "seed": 0}
    with pytest.raises(InputError, match="move it out of the registry, and propose the checkpoint again"):
        propose(store, path, *again)
    record.unlink()
    assert propose(store, path, *again) == before


@pytest.mark.parametrize(
    ("prefix", "problem"), [("0" * 12, "no such candidate"), ("0", "too short"), ("", "too short")]
)
def test_an_unknown_digest_is_refused(store: DirectoryStore, tmp_path: Path, prefix: str, problem: str) -> None:
    proposed(store, tmp_path)
    with pytest.raises(InputError, match=problem):
        find(store, prefix)


def test_a_digest_is_found_as_it_is_printed_and_in_capitals(store: DirectoryStore, tmp_path: Path) -> None:
    candidate = proposed(store, tmp_path)
    for typed in (f"sha256:{candidate.digest}", f"sha256:{candidate.digest[:12]}", candidate.digest.upper()):
        assert find(store, typed) == candidate
    with pytest.raises(InputError, match="too short"):
        find(store, f"sha256:{candidate.digest[:2]}")


def test_an_ambiguous_digest_is_refused(store: DirectoryStore) -> None:
    for last in "ab":
        candidate = Candidate("f" * 63 + last, {"result": "pass", "policy_sha256": "c" * 64}, {})
        store.put_if_absent(candidate.key, candidate.to_bytes())
    with pytest.raises(InputError, match="2 candidates"):
        find(store, "ffffffff")
    assert find(store, "f" * 63 + "a").digest.endswith("a")


class Crash(BaseException):
    """The process dies here."""


def test_a_crash_between_checkpoint_and_candidate_is_repaired_by_proposing_again(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = checkpoint(tmp_path / "c")

    def die(*_: object) -> str:
        raise Crash

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(store, "compare_and_swap", die)
        propose(store, path, evidence(path), gate(path), {})
    assert candidates(store) == []
    candidate = propose(store, path, evidence(path), gate(path), {})
    assert candidates(store) == [candidate]
