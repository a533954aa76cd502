"""The log alone says who is champion; a log or an alias that contradicts it is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.config.promotion import Policy
from components.errors import EvenkeelError, InputError
from components.files import dump_json, sha256_bytes
from components.registry import (
    Approval,
    Candidate,
    NotApproved,
    PromotionRecord,
    Standing,
    Store,
    champion,
    identify,
    promote,
    read_history,
    records,
    reject,
    rejection_question,
    rollback,
    sign,
    state,
    store_approval,
)
from components.registry.aliases import CHAMPION, follow
from components.registry.appending import make_record
from components.registry.authorization import missing_approvals
from components.registry.history import History
from components.registry.identity import KEY
from components.registry.records import record_key
from tests.unit.deciding import (
    NOON,
    ONE,
    REGISTRY,
    TWO_OF_THREE,
    MemoryStore,
    approval,
    approve,
    at,
    checks,
    go_back,
    judgement,
    key,
    propose,
    turn_down,
)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def busy(store: MemoryStore) -> MemoryStore:
    """Four records: two promotions, a rejection, a roll-back."""
    for value in range(2):
        approve(store, propose(store, float(value)))
    turn_down(store, propose(store, 2.0))
    go_back(store)
    return store


# --- records of the first schema


def first_schema(number: int, digest: str, decision: str = "approve", previous: str | None = None) -> tuple[str, bytes]:
    tree = {
        "number": number,
        "digest": digest,
        "decision": decision,
        "by": " Ada ",
        "note": "fine",
        "at": "2026-07-01T14:00:00.123456+02:00",
        "gate": {"result": "pass", "checks": []},
        "policy_sha256": "c" * 64,
        "previous": previous,
        "schema": 1,
    }
    return record_key(number), dump_json(tree).encode()


def test_records_of_the_first_schema_are_read_and_followed_by_others(store: MemoryStore) -> None:
    old, new = (propose(store, value) for value in (0.0, 1.0))
    for under, data in (first_schema(1, old.digest), first_schema(2, "f" * 64, "reject", old.digest)):
        store.put_if_absent(under, data)
    store.put_if_absent(CHAMPION, dump_json({"digest": old.digest, "record": 1}).encode())
    found = records(store)
    assert [record.says for record in found] == ["promoted by  Ada  (record 1)", "rejected by  Ada  (record 2)"]
    assert found[0].at == "2026-07-01T12:00:00+00:00"
    record = approve(store, new)
    assert (record.number, record.base, record.previous, record.schema) == (3, 1, old.digest, 2)
    assert record.before == sha256_bytes(first_schema(2, "f" * 64, "reject", old.digest)[1])
    assert go_back(store).digest == old.digest


def test_a_record_of_the_first_schema_after_a_later_one_is_refused(store: MemoryStore) -> None:
    first = propose(store)
    approve(store, first)
    store.put_if_absent(*first_schema(2, "f" * 64, previous=first.digest))
    with pytest.raises(InputError, match="schema 1 after later ones"):
        records(store)


# --- a log that was changed


def edited(store: MemoryStore, number: int, /, **changes: Any) -> None:
    key = record_key(number)
    store.objects[key] = dump_json(json.loads(store.objects[key]) | changes).encode()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_record_that_was_taken_out_is_missed(busy: MemoryStore, number: int) -> None:
    del busy.objects[record_key(number)]
    with pytest.raises(InputError, match="not numbered 1, 2, 3"):
        champion(busy)


def test_the_record_that_the_alias_stands_on_is_missed_at_the_end_too(busy: MemoryStore) -> None:
    del busy.objects[record_key(4)]
    with pytest.raises(InputError, match="no such record made it champion"):
        champion(busy)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_record_that_was_changed_breaks_the_chain(busy: MemoryStore, number: int) -> None:
    edited(busy, number, reason="another")
    with pytest.raises(InputError, match=f"record {number + 1} does not follow the record before it"):
        records(busy)


def test_the_record_that_the_champion_stands_on_cannot_be_changed_even_as_the_last(busy: MemoryStore) -> None:
    edited(busy, 4, reason="another")
    with pytest.raises(InputError, match="record 4 was changed after the champion stood on it"):
        champion(busy)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"outcome": "promoted"}, "rollback cannot come to 'promoted'"),
        ({"outcome": "superseded"}, "says 'superseded', which cannot be"),
        ({"base": 1}, "says 'rolled back', which cannot be"),
        ({"base": 3}, "on which no champion stood"),
        ({"digest": "f" * 64}, "never was the champion"),
        ({"previous": None}, "names another champion before it"),
        ({"by": "eve"}, "names others than those who approved"),
        ({"approvals": [], "by": ""}, "names others than those who approved"),
        ({"policy_sha256": "f" * 64}, "about another champion or policy"),
        ({"schema": 3}, "schema 3 is not known"),
        ({"schema": None}, "schema None is not known"),
        ({"at": "noon"}, "not a promotion record"),
        ({"number": 5}, "this is record 5"),
        ({"extra": 1}, "not a promotion record"),
        ({"gate": None}, "gate, by or reason"),
        ({"approvals": [{}]}, "not a promotion record"),
    ],
)
def test_a_forged_record_at_the_end_contradicts_the_others(
    busy: MemoryStore, changes: dict[str, Any], said: str
) -> None:
    edited(busy, 4, **changes)
    with pytest.raises(InputError, match=said) as caught:
        records(busy)
    assert caught.value.where == record_key(4) and "restore" in str(caught.value.how)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-1e999"])
def test_a_record_with_a_number_that_json_lacks_is_refused(busy: MemoryStore, number: str) -> None:
    text = busy.objects["promotions/000002.json"].decode().replace('"base": 1', f'"base": {number}')
    assert number in text
    busy.objects["promotions/000002.json"] = text.encode()
    with pytest.raises(InputError, match="is no finite number"):
        read_history(busy)


@pytest.mark.parametrize(("under", "said"), [(record_key(2), "a promotion record"), (CHAMPION, "an alias")])
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_a_damaged_record_or_alias_is_one_clear_error(busy: MemoryStore, under: str, said: str, data: bytes) -> None:
    busy.objects[under] = data
    with pytest.raises(InputError, match=f"not {said}"):
        champion(busy)


def test_a_statement_in_a_record_whose_signature_does_not_hold_is_refused(store: MemoryStore) -> None:
    candidate = propose(store)
    store_approval(store, approval(store, candidate, signed=True))
    promote(store, candidate, judgement(store, candidate), ONE, at())
    tree = json.loads(store.objects[record_key(1)])
    tree["approvals"][0]["statement"]["reason"] = tree["reason"] = "another"
    edited(store, 1, **tree)
    with pytest.raises(InputError, match="signature by ada does not hold"):
        records(store)


# --- records of other registries, and of when none was named


def nameless(store: MemoryStore, value: float, under: Policy = ONE) -> PromotionRecord:
    """A promotion as an earlier version recorded it."""
    candidate, history = propose(store, value), read_history(store)
    made = approval(store, candidate, "ada", under)
    said = replace(made.statement, registry=None, gate=None)
    given = (sign(said, key("ada")), sign(replace(said, by="grace"), key("grace")))
    return written(store, history, given[: under.settings.promote.approvals], under)


def written(store: MemoryStore, history: History, given: tuple[Approval, ...], under: Policy) -> PromotionRecord:
    found = Standing(given[0].statement.question, len(given), given, ())
    record = make_record(history, found, {"result": "pass", "checks": [one.to_dict() for one in checks()]}, under, NOON)
    store.put_if_absent(record.key, record.to_bytes())
    return record


def test_records_whose_statements_name_no_registry_hold_and_are_followed_by_others(store: MemoryStore) -> None:
    old = nameless(store, 0.0, TWO_OF_THREE)
    assert records(store) == [old] and b"registry" not in store.objects[record_key(1)]
    assert missing_approvals(old, TWO_OF_THREE) == ""
    with pytest.raises(NotApproved):
        approve(store, propose(store, 1.0), "ada", TWO_OF_THREE, signed=True)
    record = approve(store, propose(store, 1.0), "grace", TWO_OF_THREE, signed=True)
    assert (record.number, record.registry) == (2, REGISTRY)


def test_after_a_record_that_names_its_registry_none_follows_that_does_not(store: MemoryStore) -> None:
    approve(store, propose(store))
    nameless(store, 1.0)
    with pytest.raises(InputError, match="record 2 rests on statements that name no registry"):
        records(store)


def test_records_that_were_copied_from_another_registry_are_refused(busy: MemoryStore) -> None:
    busy.objects[KEY] = dump_json({"identity": "f" * 32}).encode()
    with pytest.raises(InputError, match="made in the registry 01234567, and this is ffffffff"):
        champion(busy)
    del busy.objects[KEY]
    with pytest.raises(InputError, match=r"and this has no registry\.json"):
        champion(busy)


def test_a_record_of_statements_of_two_registries_is_refused(store: MemoryStore) -> None:
    made = approval(store, propose(store), signed=True)
    other = replace(made.statement, by="grace", registry="f" * 32)
    written(store, read_history(store), (made, sign(other, key("grace"))), ONE)
    with pytest.raises(InputError, match="more than one registry"):
        records(store)


def test_an_identity_that_is_made_while_the_log_is_read_belongs_to_it(store: MemoryStore) -> None:
    del store.objects[KEY]
    history = read_history(store)
    approve(store, propose(store))
    history.read_on(store)
    assert history.base == 1 and history.registry == identify(store)


# --- what the gate said


def test_a_record_holds_the_answer_of_the_gate_that_was_approved(store: MemoryStore) -> None:
    approve(store, propose(store), signed=True)
    gate = json.loads(store.objects[record_key(1)])["gate"]
    gate["checks"][1]["evidence"] = "better than it was"
    edited(store, 1, gate=gate)
    with pytest.raises(InputError, match="record 1 holds another answer of the gate than the one that ada approved"):
        records(store)


def test_after_a_record_that_names_what_the_gate_said_none_follows_that_does_not(store: MemoryStore) -> None:
    approve(store, propose(store))
    made = approval(store, propose(store, 1.0))
    written(store, read_history(store), (replace(made, statement=replace(made.statement, gate=None)),), ONE)
    with pytest.raises(InputError, match="record 2 rests on statements that do not name what the gate says"):
        records(store)


# --- a forged record


def forged(store: MemoryStore, under: Policy) -> PromotionRecord:
    """A record by a writer who has access to the store but no key: consistent in itself, alias included."""
    candidate, history = propose(store, 9.0), read_history(store)
    unsigned = approval(store, candidate, "ada", under)
    record = written(store, history, (unsigned,), under)
    history.read_on(store)
    follow(store, history)
    return record


def signed_champion(store: MemoryStore) -> str:
    candidate = propose(store)
    with pytest.raises(NotApproved):
        approve(store, candidate, "ada", TWO_OF_THREE, signed=True)
    approve(store, candidate, "grace", TWO_OF_THREE, signed=True)
    return candidate.digest


def test_on_a_record_without_its_approvals_nothing_is_promoted_until_somebody_goes_back(store: MemoryStore) -> None:
    good = signed_champion(store)
    record = forged(store, TWO_OF_THREE)
    assert "0 of 2 approvals" in missing_approvals(record, TWO_OF_THREE)
    assert missing_approvals(records(store)[0], TWO_OF_THREE) == ""
    with pytest.raises(InputError, match=r"record 2 says 'promoted' without the approvals .* it is not signed"):
        approve(store, propose(store, 1.0), "ada", TWO_OF_THREE, signed=True)
    assert go_back(store, good, "ada", TWO_OF_THREE, signed=True).outcome == "rolled back"
    with pytest.raises(InputError, match="without the approvals"):
        go_back(store, record.digest, "ada", TWO_OF_THREE, signed=True)
    with pytest.raises(NotApproved, match="1 of 2"):
        approve(store, propose(store, 1.0), "ada", TWO_OF_THREE, signed=True)


def test_a_record_of_another_policy_is_not_held_against_the_present_one(store: MemoryStore) -> None:
    approve(store, propose(store))
    assert missing_approvals(records(store)[0], TWO_OF_THREE) == ""
    with pytest.raises(InputError, match="this registry goes by the policy"):
        approve(store, propose(store, 1.0), "ada", TWO_OF_THREE, signed=True)


def test_records_of_every_action_hold_whatever_of_the_gate_they_rest_on(store: MemoryStore) -> None:
    kept, other = propose(store, result="inconclusive"), propose(store, 1.0, "inconclusive")
    for candidate in (kept, other):
        doubtful = judgement(store, candidate, result="inconclusive")
        store_approval(store, approval(store, candidate, judged=doubtful))
        promote(store, candidate, doubtful, ONE, at())
    go_back(store)
    third = propose(store, 2.0, "inconclusive")
    store_approval(store, approval(store, third, "bob", action="reject", reason=""))
    reject(store, third, judgement(store, third, result="inconclusive"), ONE, at())
    assert [record.outcome for record in records(store)] == ["promoted", "promoted", "rolled back", "rejected"]
    assert [missing_approvals(record, ONE) for record in records(store)] == [""] * 4


# --- an alias that points elsewhere


@pytest.mark.parametrize(
    ("alias", "said"),
    [
        ({"digest": "f" * 64, "record": 4}, "no such record made it champion"),
        ({"digest": "f" * 64, "record": 9}, "no such record made it champion"),
        ({"record": 3}, "no such record made it champion"),
        ({"sha256": "f" * 64}, "record 4 was changed"),
        ({"digest": 7}, "not an alias"),
        ({"record": "4"}, "not an alias"),
        ({"more": 1}, "not an alias"),
    ],
)
def test_an_alias_that_no_record_put_there_is_refused_by_everything(
    busy: MemoryStore, alias: dict[str, Any], said: str
) -> None:
    busy.objects[CHAMPION] = dump_json(json.loads(busy.objects[CHAMPION]) | alias).encode()
    moves: list[Callable[[], object]] = [
        lambda: champion(busy),
        lambda: approve(busy, propose(busy, 7.0)),
        lambda: go_back(busy, "2"),
        lambda: turn_down(busy, propose(busy, 8.0)),
    ]
    for move in moves:
        with pytest.raises(InputError, match=said):
            move()
    assert len(records(busy)) == 4


def test_an_alias_before_any_record_is_refused(store: MemoryStore) -> None:
    store.put_if_absent(CHAMPION, dump_json({"digest": "f" * 64, "record": 0}).encode())
    with pytest.raises(InputError, match="no such record"):
        approve(store, propose(store))


@pytest.mark.parametrize("behind", [True, False])
def test_an_alias_that_is_behind_or_gone_follows_with_the_next_decision(busy: MemoryStore, behind: bool) -> None:
    now = busy.objects.pop(CHAMPION)
    if behind:
        entry = read_history(busy).champions[0]
        busy.objects[CHAMPION] = dump_json({"digest": entry.digest, "record": 1}).encode()
    found = champion(busy)
    assert found is not None and found.record == 4
    turn_down(busy, propose(busy, 9.0))
    assert busy.objects[CHAMPION] == now


# --- any order of anything


CHECKPOINTS = 4
moves = st.lists(
    st.tuples(
        st.sampled_from(["judge", "approve", "promote", "reject", "rollback", "crash"]), st.integers(0, CHECKPOINTS - 1)
    ),
    max_size=40,
)


class Someone:
    """Does things with candidates, by judgements that may be out of date by then."""

    def __init__(self, store: Store, candidates: list[Candidate]) -> None:
        self.store, self.candidates = store, candidates
        self.judged = [judgement(store, candidate) for candidate in candidates]

    def judge(self, one: int) -> None:
        self.judged[one] = judgement(self.store, self.candidates[one])

    def approve(self, one: int) -> None:
        store_approval(self.store, approval(self.store, self.candidates[one], judged=self.judged[one]))

    def promote(self, one: int) -> None:
        promote(self.store, self.candidates[one], self.judged[one], ONE, at())

    def reject(self, one: int) -> None:
        store_approval(self.store, approval(self.store, self.candidates[one], action="reject"))
        reject(self.store, self.candidates[one], self.judged[one], ONE, at())

    def rollback(self, one: int) -> None:
        asked = rejection_question(self.candidates[one], ONE, self.judged[one].base, identify(self.store))
        asked = replace(asked, action="rollback")
        store_approval(self.store, Approval(state(asked, by="ada", reason="x", at=NOON, valid=at(days=1)() - NOON)))
        rollback(self.store, asked, ONE, at())

    def crash(self, one: int) -> None:
        """Lose the alias: what a crash right before its move leaves."""
        assert isinstance(self.store, MemoryStore)
        self.store.objects.pop(CHAMPION, None)


START = MemoryStore()
POOL = [propose(START, float(value)) for value in range(CHECKPOINTS)]


@given(moves)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_order_of_anything_leaves_one_champion_with_a_record_that_made_it_so(steps: list[tuple[str, int]]) -> None:
    store = MemoryStore()
    store.trees, store.objects = set(START.trees), dict(START.objects)
    someone, last = Someone(store, POOL), 0
    for name, one in steps:
        try:
            getattr(someone, name)(one)
        except EvenkeelError as refused:
            assert isinstance(refused, (InputError, NotApproved))
        history = read_history(store)
        alias = store.get(CHAMPION)
        if alias is not None:
            assert json.loads(alias[0])["record"] >= last  # never back
            last = json.loads(alias[0])["record"]
        _sound(history)
    assert (champion(store) is None) == (read_history(store).champion is None)


def _sound(history: History) -> None:
    effective = [record for record in history.records if record.effective]
    if not effective:
        assert history.champion is None and history.base == 0
        return
    assert history.champion is not None
    assert (history.champion.digest, history.base) == (effective[-1].digest, effective[-1].number)
    standing = 0
    for record in history.records:
        assert record.effective == (record.action != "reject" and record.base == standing)
        standing = record.number if record.effective else standing
    finals = [
        (record.digest, record.evidence) for record in history.records if record.outcome in ("promoted", "rejected")
    ]
    assert len(set(finals)) == len(finals)
