"""A decision that is killed at any write, flush or rename ends, when it is repeated, as if nothing had been."""

from __future__ import annotations

import os
import shutil
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from components.config.registry import RegistrySettings
from components.files import dump_json
from components.registry import (
    Approval,
    Candidate,
    Store,
    champion,
    open_store,
    promote,
    read_history,
    rollback,
    rollback_question,
    state,
    store_approval,
)
from components.registry.directory import DirectoryStore
from components.registry.identity import KEY
from tests.unit.deciding import NOON, ONE, REGISTRY, approval, approve, at, judgement, propose, turn_down

if TYPE_CHECKING:
    from tests.s3_server import S3Server

STORE_WRITES = ("put_if_absent", "compare_and_swap")
SYSTEM_WRITES = ("fsync", "replace", "link")


def in_child(act: Callable[[], object]) -> int:
    """The exit code of ``act`` in a process of its own; -9 where it was killed."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def dies_at(owner: object, names: tuple[str, ...], number: int, after: bool) -> None:
    """Kill this process before or after the given call, counted from 1 over all of these functions."""
    calls = iter(range(1, 10_000))

    def deadly(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            fatal = next(calls) == number
            if fatal and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*args, **kwargs)
            if fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for name in names:
        setattr(owner, name, deadly(getattr(owner, name)))


CANDIDATES: list[Candidate] = []
"""The one that is decided upon: it is there before anything is killed."""


def promotion(store: Store) -> object:
    return approve(store, CANDIDATES[0], base=2)


def rejection(store: Store) -> object:
    return turn_down(store, CANDIDATES[0])


def superseded(store: Store) -> object:
    """Judged and approved against the champion before the present one."""
    store_approval(store, approval(store, CANDIDATES[0], base=1))
    return promote(store, CANDIDATES[0], judgement(store, CANDIDATES[0], base=1), ONE, at())


def roll_back(store: Store) -> object:
    """To the first champion, against the second."""
    asked = replace(rollback_question(read_history(store), read_history(store).champions[0], ONE), base=2)
    statement = state(asked, by="ada", reason="users complain", at=NOON, valid=timedelta(days=1))
    store_approval(store, Approval(statement))
    return rollback(store, asked, ONE, at())


DECISIONS = {"promotion": promotion, "rejection": rejection, "roll-back": roll_back, "superseded": superseded}


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with two champions one after the other, and a candidate."""
    root = tmp_path_factory.mktemp("registry") / "before"
    store = DirectoryStore(root)
    for value in (0.0, 1.0):
        approve(store, propose(store, value))
    CANDIDATES[:] = [propose(store, 5.0)]
    return root


def objects(root: Path) -> dict[str, bytes]:
    """Everything that is stored; what a killed writer left under a temporary name is no object."""
    files = (path for path in (root / "objects").rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def crashes(root: Path, before: Path, decision: Callable[[Store], object], names: tuple[str, ...]) -> Iterator[int]:
    """The registry after each way to die, one after the other, until the decision gets through alive."""
    owner = (lambda store: store) if names == STORE_WRITES else (lambda store: os)

    def deadly(number: int, after: bool) -> None:
        store = DirectoryStore(root)
        dies_at(owner(store), names, number, after)
        decision(store)

    for number in range(1, 100):
        for after in (False, True):
            shutil.rmtree(root, ignore_errors=True)
            shutil.copytree(before, root)
            code = in_child(partial(deadly, number, after))
            if code == 0:
                return
            assert code == -signal.SIGKILL
            yield number


@pytest.mark.parametrize(
    "names",
    [pytest.param(STORE_WRITES, id="write"), pytest.param(SYSTEM_WRITES, id="system call", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("decision", DECISIONS.values(), ids=DECISIONS)
def test_killed_anywhere_the_same_command_ends_as_if_it_had_not_been(
    tmp_path: Path, before: Path, decision: Callable[[Store], object], names: tuple[str, ...]
) -> None:
    undisturbed = tmp_path / "undisturbed"
    shutil.copytree(before, undisturbed)
    decision(DirectoryStore(undisturbed))
    expected = objects(undisturbed)
    assert len(expected) > len(objects(before))
    root, ways = tmp_path / "registry", 0
    for ways in crashes(root, before, decision, names):  # noqa: B007
        champion(DirectoryStore(root))  # what is there is sound at every moment
        decision(DirectoryStore(root))
        assert objects(root) == expected
    assert ways >= (2 if names == STORE_WRITES else 4)


def decisions(store: Store) -> dict[str, bytes]:
    """What was stated and decided."""
    found = [(key, store.get(key)) for part in ("approvals/", "promotions/", "aliases/") for key in store.keys(part)]
    return {key: stored[0] for key, stored in found if stored is not None}


@pytest.mark.slow
def test_killed_at_any_write_on_s3_it_ends_as_if_it_had_not_been(s3_server: S3Server, tmp_path: Path) -> None:
    def fresh() -> RegistrySettings:
        settings = s3_server.settings(tmp_path, uuid4().hex)
        store = open_store(settings)
        store.put_if_absent(KEY, dump_json({"identity": REGISTRY}).encode())  # which every statement names
        for value in (0.0, 1.0):
            approve(store, propose(store, value))
        CANDIDATES[:] = [propose(store, 5.0)]
        return settings

    def deadly(settings: RegistrySettings, number: int, after: bool) -> None:
        store = open_store(settings)
        dies_at(store, STORE_WRITES, number, after)
        promotion(store)

    undisturbed = open_store(fresh())
    promotion(undisturbed)
    for number, after in ((number, after) for number in (1, 2, 3, 4) for after in (False, True)):
        settings = fresh()
        assert in_child(partial(deadly, settings, number, after)) == -signal.SIGKILL
        assert in_child(lambda settings=settings: promotion(open_store(settings))) == 0
        assert decisions(open_store(settings)) == decisions(undisturbed)
    assert in_child(partial(deadly, fresh(), 5, False)) == 0
