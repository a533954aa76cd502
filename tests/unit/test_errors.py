"""Errors state what is wrong, where and how to fix it, and carry the exit code."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from components.errors import (
    CorrectableError,
    EvenkeelError,
    InputError,
    MachineError,
    NoCandidate,
    NonfiniteWeights,
    PeerLost,
    Stopped,
    of_machine,
)


def test_an_error_reads_as_what_where_and_how():
    error = InputError("file not found", where=Path("data.jsonl"), how="check the path")
    assert str(error).splitlines() == ["file not found", "  where: data.jsonl", "  fix:   check the path"]


def test_what_is_not_known_is_left_out():
    assert str(InputError("too few rows")) == "too few rows"


def test_a_path_that_is_not_utf_8_can_be_shown():
    error = InputError("not found", where=Path(os.fsdecode(b"caf\xe9.txt")))
    assert str(error).encode().endswith(rb"where: caf\udce9.txt")


@pytest.mark.parametrize("hostile", ["a\x1b[2Kb", "a\rb", "a\u202eb", "a\x9b2Jb", "a\x07b", "a\u2028b"])
def test_nothing_that_an_error_quotes_is_obeyed(hostile):
    for error in (InputError(hostile), InputError("x", where=hostile), InputError("x", how=hostile)):
        assert all(line.isprintable() for line in str(error).split("\n"))


def test_what_an_error_quotes_cannot_pass_for_a_message_of_its_own():
    forged = "a\npromoted by ada"
    said = str(InputError(forged, where=forged, how=forged)).splitlines()
    assert [line for line in said if line.startswith("promoted")] == []
    assert "  where: a\\npromoted by ada" in said


def test_a_place_of_thousands_of_characters_is_cut():
    assert len(str(InputError("x", where="y" * 5000))) < 500


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.ENAMETOOLONG, errno.EACCES])
def test_what_the_machine_refuses_says_what_to_do(number):
    refused = of_machine(OSError(number, os.strerror(number), "some/file"))
    assert isinstance(refused, MachineError)
    assert (refused.where, bool(refused.how)) == ("some/file", True)


def test_other_errors_of_the_system_stay_bugs():
    assert of_machine(OSError(errno.EBADF, "bad file descriptor")) is None


def test_bad_input_and_a_refused_candidate_have_their_own_exit_codes():
    assert (InputError("x").exit_code, NoCandidate("x").exit_code) == (2, 3)
    assert all(issubclass(kind, EvenkeelError) for kind in (InputError, NoCandidate))


def test_after_what_may_pass_the_exit_code_says_that_the_same_command_goes_on():
    assert (PeerLost("x").exit_code, Stopped("x").exit_code) == (75, 143)
    assert all(issubclass(kind, CorrectableError) for kind in (InputError, MachineError, NonfiniteWeights, PeerLost))
    assert not any(issubclass(kind, InputError) for kind in (MachineError, NonfiniteWeights, PeerLost, Stopped))
    assert not issubclass(Stopped, InputError)
