"""Whom a run belongs to, where its settings do not say it."""

from __future__ import annotations

from typing import NoReturn

import pytest

from components.errors import InputError
from components.launch.kubernetes import owner


def nameless() -> NoReturn:
    raise KeyError("getpwuid(): uid not found: 10001")


def test_a_run_belongs_to_whom_the_environment_names_and_else_to_who_submits_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owner, "getuser", lambda: "ada")
    monkeypatch.delenv(owner.OWNER, raising=False)
    assert owner.submitter() == "ada"
    monkeypatch.setenv(owner.OWNER, "grace")
    assert owner.submitter() == "grace"


def test_in_a_container_whose_user_has_no_name_it_has_to_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(owner.OWNER, raising=False)
    monkeypatch.setattr(owner, "getuser", nameless)
    with pytest.raises(InputError, match="this user has no name") as caught:
        owner.submitter()
    assert "launch.kubernetes.owner" in str(caught.value)
