"""Errors tell what, where and how to mend it, and carry the exit code."""

from __future__ import annotations

import os
from pathlib import Path

from components.errors import EvenkeelError, InputError, NoCandidate, PeerLost, Stopped


def test_an_error_reads_as_what_where_and_how():
    error = InputError("file not found", where=Path("data.jsonl"), how="check the path")
    assert str(error).splitlines() == ["file not found", "  where: data.jsonl", "  mend:  check the path"]


def test_what_is_not_known_is_left_out():
    assert str(InputError("too few rows")) == "too few rows"


def test_a_path_that_is_not_utf_8_can_be_shown():
    error = InputError("not found", where=Path(os.fsdecode(b"caf\xe9.txt")))
    assert str(error).encode().endswith(rb"where: caf\udce9.txt")


def test_bad_input_and_a_refused_candidate_have_their_own_exit_codes():
    assert (InputError("x").exit_code, NoCandidate("x").exit_code) == (2, 3)
    assert all(issubclass(kind, EvenkeelError) for kind in (InputError, NoCandidate))


def test_after_what_may_pass_the_exit_code_says_that_the_same_command_goes_on():
    assert (PeerLost("x").exit_code, Stopped("x").exit_code) == (75, 143)
    assert issubclass(PeerLost, InputError)  # whoever deals with what is wrong around it deals with this, too
    assert not issubclass(Stopped, InputError)
