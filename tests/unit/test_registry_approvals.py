"""Statements and signatures, and which approvals count: every way around them fails closed and says why."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import pytest

from components.config.promotion import Policy
from components.errors import InputError
from components.registry import (
    Approval,
    Candidate,
    Standing,
    Terms,
    approvals_of,
    read_approval,
    rejection_question,
    sign,
    standing,
    state,
    store_approval,
)
from components.registry.approvals import signature_holds
from components.registry.statements import DOMAIN
from tests.unit.deciding import (
    NOON,
    REGISTRY,
    STARTER,
    TWO_OF_THREE,
    MemoryStore,
    approval,
    approvers,
    asked_of,
    at,
    key,
    policy,
    propose,
)

DAY = 24 * 3600


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def candidate(store: MemoryStore) -> Candidate:
    return propose(store)


def judged(
    candidate: Candidate,
    *given: Approval,
    under: Policy = TWO_OF_THREE,
    base: int = 0,
    starter: Any = (STARTER,),
    **later: float,
) -> Standing:
    """Held against the policy, at noon unless later."""
    asked = asked_of(candidate, under, base)
    return standing(given, Terms(asked, under, at(**later)(), starter))


def why(found: Standing) -> str:
    """The one reason why the one approval does not count."""
    assert not found.counted and not found.met
    return found.others[0][1]


def signed(store: MemoryStore, candidate: Candidate, by: str = "ada", **how: Any) -> Approval:
    return approval(store, candidate, by, TWO_OF_THREE, signed=True, **how)


# --- what is signed


def test_an_approval_survives_storing_and_pasting(store: MemoryStore, candidate: Candidate) -> None:
    made = signed(store, candidate, reason="ünïcode, with 'quotes'\nand lines")
    store_approval(store, made)
    store_approval(store, made)
    assert approvals_of(store, candidate.digest) == [made]
    assert read_approval(made.to_text(), "form") == made
    assert signature_holds(made)


def test_a_signature_covers_every_field_of_the_statement(store: MemoryStore, candidate: Candidate) -> None:
    made = signed(store, candidate)
    changes: dict[str, Any] = {
        "action": "rollback",
        "digest": "f" * 64,
        "evidence": "e" * 64,
        "policy": "d" * 64,
        "base": 1,
        "registry": "f" * 32,
        "gate": "a" * 64,
        "by": "grace",
        "reason": "other",
        "at": "2026-08-01T11:00:00+00:00",
        "expires": "2027-08-01T12:00:00+00:00",
    }
    assert set(changes) == set(asdict(made.statement))
    for name, value in changes.items():
        assert not signature_holds(replace(made, statement=replace(made.statement, **{name: value}))), name


def test_a_signature_for_another_purpose_is_none_of_an_approval(store: MemoryStore, candidate: Candidate) -> None:
    made = signed(store, candidate)
    assert made.statement.signed_bytes().startswith(DOMAIN)
    bare = key("ada").sign(made.statement.signed_bytes().removeprefix(DOMAIN))
    assert not signature_holds(replace(made, signature=base64.b64encode(bare).decode()))


UNSEEN = ("\u3164", "\ufe0f", "\u115f", "\uffa0", "\u2800", "\u034f", "\U000e0100")
"""Fillers, selectors and blanks, which Unicode counts among letters, marks and symbols."""
TWO_NAMES = ("ada, grace", "ada,grace", "ada， grace")


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        *(({"by": by}, "name") for by in ("", "  ", "a\x1b[2Jb", "a\u202eb", "x" * 201, "\u3164")),
        *(({"by": f"ada{one}"}, "name") for one in UNSEEN),
        *(({"by": by}, r"comma, which stands between the names of several[^$]*`also`") for by in TWO_NAMES),
        *(({"reason": reason}, "reason") for reason in ("\x1b[31mred", "a\u202eb", "x" * 4001, "\ud800")),
    ],
)
def test_a_name_or_a_reason_that_does_not_show_as_it_is_is_refused(
    candidate: Candidate, said: dict[str, str], refused: str
) -> None:
    with pytest.raises(InputError, match=refused):
        state(asked_of(candidate, TWO_OF_THREE), **{"by": "ada", "reason": "", **said}, at=NOON, valid=timedelta(1))


@pytest.mark.parametrize(
    "change",
    [
        {"action": "delete"},
        {"digest": "abc"},
        {"policy": None},
        {"base": True},
        {"registry": None},
        {"registry": "../prod"},
        {"at": "0001-01-01T00:00:00+14:00"},
        {"by": "ada\ufe0f"},
        {"base": -1},
        {"by": 7},
        {"at": "2026-08-01"},
        {"at": "2026-08-01T12:00:00+02:00"},
        {"expires": "2026-08-01T12:00:00+00:00"},
        {"more": 1},
    ],
)
def test_a_malformed_statement_is_refused(store: MemoryStore, candidate: Candidate, change: dict[str, Any]) -> None:
    tree = json.loads(signed(store, candidate).to_text())
    tree["statement"] |= change
    with pytest.raises(InputError, match="not an approval"):
        read_approval(json.dumps(tree), "form")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"statement": {}}', "[" * 10_000, "x" * 20_001])
def test_what_is_no_approval_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not an approval"):
        read_approval(text, "form")


@pytest.mark.parametrize("part", ["key", "signature"])
def test_a_key_or_a_signature_that_cannot_be_stored_is_refused(
    store: MemoryStore, candidate: Candidate, part: str
) -> None:
    tree = json.loads(signed(store, candidate).to_text())
    with pytest.raises(InputError, match="not an approval: the key or the signature"):
        read_approval(json.dumps(tree | {part: "\ud800"}), "form")


@pytest.mark.parametrize("character", ["\u5b57", "\U0001f600", '"', "\n", "\u2028"])
def test_an_approval_with_the_longest_reason_survives_pasting(
    store: MemoryStore, candidate: Candidate, character: str
) -> None:
    made = signed(store, candidate, reason="a" + character * 3998 + "b")
    assert read_approval(made.to_text(), "form") == made
    assert "\n" not in made.to_text()


def test_whatever_is_stored_can_be_read_and_held_against_the_policy(store: MemoryStore, candidate: Candidate) -> None:
    made = signed(store, candidate)
    odd = [
        replace(made, signature="A" * 30_000),
        replace(made, signature=f"{made.signature[:8]}\n{made.signature[8:]}"),
        replace(made, key="\u5b57"),
        replace(made, statement=replace(made.statement, at="0001-01-01T00:00:00+00:00")),
        replace(made, statement=replace(made.statement, expires="9999-12-31T23:59:59+00:00")),
        replace(made, statement=replace(made.statement, base=10**300)),
    ]
    for one in (*odd, made):
        store_approval(store, one)
    found = judged(candidate, *approvals_of(store, candidate.digest))
    assert found.counted == (made,) and len(found.others) == len(odd)


def test_a_stored_approval_that_was_changed_is_refused(store: MemoryStore, candidate: Candidate) -> None:
    made = store_approval(store, signed(store, candidate))
    store.objects[made.stored_under] = made.to_bytes().replace(b"looks right", b"looks wrong")
    with pytest.raises(InputError, match="was changed"):
        approvals_of(store, candidate.digest)


# --- which count


def test_different_listed_approvers_make_up_the_quorum(store: MemoryStore, candidate: Candidate) -> None:
    found = judged(candidate, signed(store, candidate), signed(store, candidate, "grace"))
    assert found.met and found.by == "ada, grace" and not found.others


OPEN, LISTED = policy(), policy(approvers=approvers("ada"))
WEAKER = policy(approvers=approvers("ada", "grace", "lin"), promote={"approvals": 1, "signed": True})
STRICT = policy(promote={"own_approval": False})


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("for another checkpoint", lambda s, c: judged(propose(s, 1.0), signed(s, c))),
        ("other evidence", lambda s, c: judged(replace(c, evidence="e" * 64), signed(s, c))),
        (
            "stood on no record when it was given and stands on record 3 now",
            lambda s, c: judged(c, signed(s, c), base=3),
        ),
        ("policy was another", lambda s, c: judged(c, signed(s, c), under=WEAKER)),
        ("longer than the 14 days", lambda s, c: judged(c, signed(s, c, days=15))),
        ("names no registry; approve again", lambda s, c: judged(c, nameless(signed(s, c)))),
        ("not signed", lambda s, c: judged(c, approval(s, c, "ada", TWO_OF_THREE))),
        ("key is not listed", lambda s, c: judged(c, sign(signed(s, c).statement, key("eve")))),
        ("signed with the key of grace", lambda s, c: judged(c, sign(signed(s, c).statement, key("grace")))),
        ("signature is not one", lambda s, c: judged(c, replace(signed(s, c), signature=""))),
        ("signature is not one", lambda s, c: judged(c, replace(signed(s, c), signature="AAAA"))),
        ("signature is not one", lambda s, c: judged(c, replace(signed(s, c), signature="not base64!"))),
        (
            "signature is not one",  # also where none is wanted
            lambda s, c: judged(c, replace(approval(s, c, under=OPEN, signed=True), signature="AAAA"), under=OPEN),
        ),
        ("lists other approvers: ada", lambda s, c: judged(c, approval(s, c, "eve", LISTED), under=LISTED)),
        ("not recorded who started the run", lambda s, c: judged(c, signed(s, c), starter=None)),
        ("by the one who started the run", lambda s, c: judged(c, approval(s, c, STARTER, STRICT), under=STRICT)),
    ],
)
def test_an_approval_that_does_not_count_says_why(
    store: MemoryStore, candidate: Candidate, reason: str, found: Callable[[MemoryStore, Candidate], Standing]
) -> None:
    assert reason in why(found(store, candidate))


def test_where_nothing_is_required_a_signature_holds_and_the_one_who_ran_it_may_approve(
    store: MemoryStore, candidate: Candidate
) -> None:
    assert judged(candidate, approval(store, candidate, under=OPEN, signed=True), under=OPEN).met
    assert judged(candidate, approval(store, candidate, STARTER, OPEN), under=OPEN).met


def test_an_approval_replayed_in_another_registry_does_not_count(store: MemoryStore, candidate: Candidate) -> None:
    asked = replace(asked_of(candidate, TWO_OF_THREE), registry="f" * 32)
    for action in ("promote", "reject"):
        elsewhere = Terms(replace(asked, action=action), TWO_OF_THREE, NOON, (STARTER,))  # type: ignore[arg-type]
        text = why(standing([signed(store, candidate, action=action)], elsewhere))
        assert text.startswith("it was made in the registry 01234567, and this is ffffffff")


# --- statements of earlier versions, which named no registry


def nameless(made: Approval, by: str = "ada") -> Approval:
    """The same as an earlier version made it."""
    tree = {name: value for name, value in asdict(made.statement).items() if name not in ("registry", "gate")}
    tree["by"] = by
    said = b"evenkeel approval v1\n" + json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()
    signature = base64.b64encode(key("ada").sign(said)).decode()
    return read_approval(json.dumps({"statement": tree, "key": made.key, "signature": signature}), "earlier")


def test_a_statement_that_names_no_registry_is_read_and_keeps_its_bytes_and_its_signature(
    store: MemoryStore, candidate: Candidate
) -> None:
    for made in (nameless(signed(store, candidate)), nameless(signed(store, candidate), by="ada\ufe0f, grace")):
        assert signature_holds(made) and made.statement.registry is None
        assert "registry" not in made.to_text()
        store_approval(store, made)
        assert made in approvals_of(store, candidate.digest)


def test_a_statement_that_names_no_registry_counts_in_the_records_of_its_time(
    store: MemoryStore, candidate: Candidate
) -> None:
    made = nameless(signed(store, candidate))
    before = replace(asked_of(candidate, TWO_OF_THREE), registry=None, gate=None)
    assert standing([made], Terms(before, TWO_OF_THREE, NOON, (STARTER,))).counted == (made,)


def test_a_signature_without_a_registry_is_none_of_a_statement_with_one(
    store: MemoryStore, candidate: Candidate
) -> None:
    made = nameless(signed(store, candidate))
    assert not signature_holds(replace(made, statement=replace(made.statement, registry=REGISTRY)))


def test_an_approval_of_another_answer_of_the_gate_does_not_count(store: MemoryStore, candidate: Candidate) -> None:
    doubtful = asked_of(candidate, TWO_OF_THREE, result="inconclusive")
    found = standing([signed(store, candidate)], Terms(doubtful, TWO_OF_THREE, NOON, (STARTER,), doubtful=True))
    assert "the gate says something else than when it was given" in why(found)


@pytest.mark.parametrize(("later", "counts"), [(-120, False), (-30, True), (7 * DAY - 1, True), (7 * DAY, False)])
def test_an_approval_counts_from_when_it_was_given_until_it_expires(
    store: MemoryStore, candidate: Candidate, later: float, counts: bool
) -> None:
    """Half a minute is what the clocks of two machines may differ by."""
    found = judged(candidate, signed(store, candidate), seconds=later)
    assert bool(found.counted) is counts
    if not counts:
        assert ("not valid before" if later < 0 else "expired at") in why(found)


@pytest.mark.parametrize("by", ["lin", "LIN", "Lin@example.org"])
def test_the_one_who_started_the_run_does_not_count_under_any_name(
    store: MemoryStore, candidate: Candidate, by: str
) -> None:
    asked = asked_of(candidate, TWO_OF_THREE)
    own = sign(state(asked, by=by, reason="", at=NOON, valid=timedelta(1)), key("lin"))
    assert "by the one who started the run" in why(judged(candidate, own))


def test_the_same_approver_counts_once(store: MemoryStore, candidate: Candidate) -> None:
    again = signed(store, candidate, reason="once more")
    found = judged(candidate, signed(store, candidate), again)
    assert (len(found.counted), found.missing) == (1, 1)
    assert found.others == ((again, "the same approver is counted already"),)


def test_of_two_approvals_by_one_person_the_one_that_is_valid_longer_counts_in_its_place(
    store: MemoryStore, candidate: Candidate
) -> None:
    short, grace = signed(store, candidate, days=1), signed(store, candidate, "grace")
    renewed = signed(store, candidate, days=7, reason=short.statement.reason)
    found = judged(candidate, short, grace, renewed)
    assert found.counted == (grace, renewed)
    assert found.others == ((short, "the same approver is counted already"),)
    assert found.has(short, TWO_OF_THREE) and not judged(candidate, short).has(renewed, TWO_OF_THREE)
    assert not found.has(signed(store, candidate, days=1, reason="another"), TWO_OF_THREE)


def test_the_same_approver_under_two_names_counts_once(store: MemoryStore, candidate: Candidate) -> None:
    asked = asked_of(candidate, TWO_OF_THREE)
    mail = sign(state(asked, by="ada@example.org", reason="", at=NOON, valid=timedelta(1)), key("ada"))
    assert len(judged(candidate, signed(store, candidate), mail).counted) == 1


@pytest.mark.parametrize("other", ["ada", "ADA", " Ada", "ａｄａ"])
def test_without_signatures_names_are_compared_whatever_their_case_or_width(
    store: MemoryStore, candidate: Candidate, other: str
) -> None:
    two = policy(promote={"approvals": 2})
    given = [approval(store, candidate, name, two, reason=name) for name in ("ada", other)]
    assert len(judged(candidate, *given, under=two).counted) == 1
    given.append(approval(store, candidate, "grace", two))
    assert judged(candidate, *given, under=two).met


def test_one_key_under_two_names_counts_once_where_none_are_listed(store: MemoryStore, candidate: Candidate) -> None:
    two = policy(promote={"approvals": 2})
    given = [sign(approval(store, candidate, name, two).statement, key("ada")) for name in ("ada", "grace")]
    found = judged(candidate, *given, under=two)
    assert len(found.counted) == 1
    assert "key is counted already" in found.others[0][1]


def test_a_doubtful_gate_needs_a_reason_of_everyone(store: MemoryStore, candidate: Candidate) -> None:
    terms = Terms(asked_of(candidate, OPEN), OPEN, NOON, doubtful=True)
    silent, reasoned = (approval(store, candidate, "ada", OPEN, reason=text) for text in ("", "the plot is fine"))
    assert "inconclusive and it gives no reason" in why(standing([silent], terms))
    assert standing([silent, reasoned], terms).met


def test_a_rejection_is_no_approval_and_an_approval_no_rejection(store: MemoryStore, candidate: Candidate) -> None:
    no = signed(store, candidate, action="reject")
    assert judged(candidate, no).counted == ()
    rejection = rejection_question(candidate, TWO_OF_THREE, 0, REGISTRY)
    terms = Terms(rejection, TWO_OF_THREE, NOON, (STARTER,))
    assert not standing([signed(store, candidate)], terms).met
    assert standing([no], terms).met


def test_a_rejection_stands_whatever_became_of_the_policy_the_champion_and_the_time(
    store: MemoryStore, candidate: Candidate
) -> None:
    no = signed(store, candidate, action="reject")
    rejection = rejection_question(candidate, LISTED, 5, REGISTRY)
    assert standing([no], Terms(rejection, LISTED, at(days=400)(), (STARTER,))).met


def test_every_approval_that_does_not_count_is_listed_with_its_reason(store: MemoryStore, candidate: Candidate) -> None:
    lines = judged(candidate, signed(store, candidate), signed(store, candidate, "lin")).lines()
    assert lines[0] == "1 of 2 approvals: ada"
    why_not = "the one by lin (2026-08-01T12:00:00+00:00) does not count: it is by the one who started"
    assert lines[1].startswith(why_not)
