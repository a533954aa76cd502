"""What flows and tasks end in when it is neither a plain success nor a bug."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from components.errors import InputError
from flows.audit_run import audit_run
from flows.post_training import post_training
from flows.prefect_runtime.states import completed_as, expected_failures, value


def test_an_expected_failure_becomes_a_failed_state_with_its_words_and_is_raised_for_who_asks() -> None:
    failure = InputError("no such file", where=Path("x.yaml"), how="write it")
    state = expected_failures(_raising(failure))()
    assert state.is_failed()
    assert state.message == str(failure)
    with pytest.raises(InputError, match="no such file"):
        value(state)


def test_a_bug_stays_an_exception() -> None:
    with pytest.raises(ZeroDivisionError):
        expected_failures(_raising(ZeroDivisionError()))()


def test_an_answer_is_completed_under_its_name_and_has_its_value() -> None:
    state = completed_as(7, "Cached", "nothing changed")
    assert (state.is_completed(), state.name, state.message) == (True, "Cached", "nothing changed")
    assert value(state) == value(7) == 7


@pytest.mark.parametrize("flow", [post_training, audit_run])
def test_a_decorated_flow_keeps_its_signature_with_its_types(flow) -> None:
    types = {name: parameter.annotation for name, parameter in inspect.signature(flow.fn).parameters.items()}
    assert types
    assert not [name for name, annotation in types.items() if isinstance(annotation, str)]


def _raising(error: Exception):
    def body() -> int:
        raise error

    return body
