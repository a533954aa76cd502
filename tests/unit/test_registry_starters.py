"""Who started a run: the evidence that is approved says it, and the candidate's record must not leave anybody out."""

from pathlib import Path
from typing import Any

import pytest

from components.errors import InputError
from components.files import write_json, write_text
from components.layout import Layout
from components.registry import Candidate, NotApproved
from components.registry.starters import started_by
from tests.unit.deciding import MemoryStore, approve, go_back, policy, propose


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def candidate(store: MemoryStore, folder: Path, recorded: Any, *written: Any, value: float = 0.0) -> Candidate:
    """One whose record says this of who started it, and its evidence that, or nothing."""
    folder.mkdir(exist_ok=True)
    write_json(Layout(folder).lineage, {"run": "demo", **({"started_by": written[0]} if written else {})})
    found = propose(store, value, evidence=store.put_tree(folder), run={"started_by": recorded})
    return found


@pytest.mark.parametrize(
    ("recorded", "written", "who"),
    [
        (["ada"], [], ("ada",)),
        ("ada", [], ("ada",)),
        ([], [], None),
        (["ada"], [["ada"]], ("ada",)),
        (["ada", "bob"], [["bob"]], ("ada", "bob")),
        ([], [["bob"]], None),
        ([], [[]], None),
        (None, [["bob"]], None),
    ],
    ids=str,
)
def test_it_is_whom_the_record_names_where_the_evidence_names_no_one_else(
    store: MemoryStore, tmp_path: Path, recorded: Any, written: list[Any], who: Any
) -> None:
    assert started_by(store, candidate(store, tmp_path, recorded, *written)) == who


@pytest.mark.parametrize(
    ("recorded", "written", "said"),
    [
        (["eve"], ["ada"], "started by eve, says the candidate's record, and its evidence says ada"),
        (["ada"], ["ada", "bob"], "its evidence says ada, bob"),
        (["eve"], [], "its evidence says that it is not known"),
        (["eve"], {"ada": 1}, "its evidence says that it is not known"),
    ],
)
def test_a_record_that_leaves_out_a_name_of_the_evidence_is_refused(
    store: MemoryStore, tmp_path: Path, recorded: list[str], written: Any, said: str
) -> None:
    found = candidate(store, tmp_path, recorded, written)
    with pytest.raises(InputError, match=said) as caught:
        started_by(store, found)
    assert caught.value.where == found.key and caught.value.how
    with pytest.raises(InputError, match=said):
        approve(store, found)


@pytest.mark.parametrize("text", ["[]", "{", "7"])
def test_evidence_that_cannot_be_read_is_left_to_the_gate(store: MemoryStore, tmp_path: Path, text: str) -> None:
    write_text(Layout(tmp_path / "e").lineage, text)
    found = propose(store, evidence=store.put_tree(tmp_path / "e"), run={"started_by": ["ada"]})
    assert started_by(store, found) == ("ada",)
    store.trees.discard(str(found.evidence))
    assert started_by(store, found) == ("ada",)


def test_who_started_it_may_be_kept_from_going_back_to_it_and_others_may(store: MemoryStore, tmp_path: Path) -> None:
    strict = policy(rollback={"own_approval": False})
    for value in (0.0, 1.0):
        approve(store, candidate(store, tmp_path, ["ada"], ["ada"], value=value), "bob", strict)
    with pytest.raises(NotApproved, match="by the one who started the run"):
        go_back(store, by="ada", under=strict)
    assert go_back(store, by="bob", under=strict).outcome == "rolled back"


def test_a_champion_whose_record_was_edited_is_not_gone_back_to(store: MemoryStore, tmp_path: Path) -> None:
    first, second = (candidate(store, tmp_path, ["ada"], ["ada"], value=value) for value in (0.0, 1.0))
    for one in (first, second):
        approve(store, one, "bob")
    store.objects[first.key] = store.objects[first.key].replace(b'"ada"', b'"eve"')
    with pytest.raises(InputError, match="its evidence says ada"):
        go_back(store, by="ada")
