"""Which registry it is: made once, by whoever is first, and never corrected."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from components.errors import InputError
from components.registry import DirectoryStore, identify
from components.registry.identity import KEY, check_identity, identity
from tests.proposals import propose_run, write_run


def test_a_registry_has_no_identity_until_it_is_asked_for_and_then_keeps_it(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "registry")
    assert identity(store) == "" and store.keys("") == []
    made = identify(store)
    assert check_identity(made) == made
    assert identify(store) == identity(store) == made
    assert identify(DirectoryStore(tmp_path / "another")) != made


def test_a_registry_has_an_identity_once_something_was_proposed(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "registry")
    propose_run(store, write_run(tmp_path / "demo"), None)
    assert identity(store)


def test_of_many_who_make_the_identity_at_once_all_get_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(lambda _: identify(DirectoryStore(tmp_path / "registry")), range(32)))
    assert len(found) == 1


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"{}", b"null", b'{"identity": 7}', b'{"identity": "ABC"}', b"[" * 5000, b"\xff"]
)
def test_what_is_no_identity_is_one_clear_error_and_is_not_replaced(tmp_path: Path, data: bytes) -> None:
    store = DirectoryStore(tmp_path / "registry")
    store.put_if_absent(KEY, data)
    with pytest.raises(InputError, match="not the identity of a registry") as caught:
        identify(store)
    assert caught.value.where == KEY and caught.value.how
