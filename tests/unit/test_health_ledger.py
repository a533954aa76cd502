"""The ledger of a run, read back."""

from __future__ import annotations

import pytest

from components.errors import InputError
from components.files import write_jsonl, write_text
from components.health.responses import Ledger, read_ledger
from components.types import Change, Outcome, Response

CHANGES = (Change("learner.lr", 2e-4, 1e-4), Change("objective.kl.beta", None, 0.01))
DONE = {"changes": CHANGES, "back_to": 40, "quarantined": ("p012",), "did": "back to step 40"}
SAW = {"entropy": [0.31, None]}
RESPONSE = Response(3, 57, "entropy_collapse", "intervene", "rollback", "it falls", SAW, **DONE)
OUTCOME = Outcome(3, 67, True, {"entropy": [0.31, 0.35], "kl_ref": [None, 0.1]}, 17)


def test_entries_come_back_as_they_were_written(tmp_path):
    other = Response(4, 60, "quiet", "warn", "warn", "why")
    path = tmp_path / "ledger.jsonl"
    write_jsonl(path, [RESPONSE.to_dict(), other.to_dict(), OUTCOME.to_dict()])
    ledger = read_ledger(path)
    assert ledger == Ledger((RESPONSE, other), (OUTCOME,))
    assert (ledger.outcome(RESPONSE), ledger.outcome(other)) == (OUTCOME, None)


def test_of_two_outcomes_of_a_response_the_latest_counts():
    later = Outcome(3, 90, False)
    assert Ledger((RESPONSE,), (OUTCOME, later)).outcome(RESPONSE) == later


def test_a_ledger_of_a_run_in_which_nothing_was_said_is_empty(tmp_path):
    write_text(tmp_path / "ledger.jsonl", "")
    assert read_ledger(tmp_path / "ledger.jsonl") == Ledger()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kind": "verdict"}, "not an entry of a ledger"),
        ({"kind": None}, "not an entry of a ledger"),
        ({"kind": ["response"]}, "not an entry of a ledger"),
        ({"kind": "outcome"}, "not an entry of a ledger"),
        ({"surplus": 1}, "not an entry of a ledger"),
        ({"changes": [{"knob": "learner.lr"}]}, "changes.0.before"),
        ({"changes": "learner.lr"}, "changes"),
        ({"changes": [1]}, "changes.0"),
        ({"level": "panic"}, "level"),
        ({"step": "soon"}, "step"),
        ({"saw": {"entropy": ["low"]}}, "saw.entropy.0"),
        ({"quarantined": [None]}, "quarantined.0"),
        ({"back_to": 1.5}, "back_to"),
    ],
)
def test_a_line_that_is_no_entry_is_an_error_naming_it(tmp_path, change, problem):
    path = tmp_path / "ledger.jsonl"
    write_jsonl(path, [OUTCOME.to_dict(), {**RESPONSE.to_dict(), **change}])
    with pytest.raises(InputError, match=problem) as caught:
        read_ledger(path)
    assert f"{path}, entry 2" in str(caught.value)


def test_an_entry_that_lacks_a_field_is_an_error(tmp_path):
    row = OUTCOME.to_dict()
    del row["recovered"]
    write_jsonl(tmp_path / "ledger.jsonl", [row])
    with pytest.raises(InputError, match="not an entry of a ledger"):
        read_ledger(tmp_path / "ledger.jsonl")


def test_a_missing_ledger_is_an_error_and_a_torn_line_too(tmp_path):
    with pytest.raises(InputError, match="file not found"):
        read_ledger(tmp_path / "ledger.jsonl")
    write_text(tmp_path / "ledger.jsonl", '{"kind": "resp')
    with pytest.raises(InputError, match="not valid JSON"):
        read_ledger(tmp_path / "ledger.jsonl")
