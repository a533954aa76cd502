"""Many decisions at the same moment, by threads of several processes: one wins, and every one is recorded."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from uuid import uuid4

import pytest

from components.config.promotion import Policy
from components.config.registry import RegistrySettings, TransferSettings
from components.errors import EvenkeelError
from components.files import read_json
from components.registry import (
    Candidate,
    Store,
    approvals_of,
    champion,
    open_store,
    promote,
    read_history,
    store_approval,
)
from components.registry.aliases import CHAMPION, read_alias
from components.types import Judgement
from tests.unit.deciding import ONE, approval, approve, at, go_back, judgement, propose

SPAWN = multiprocessing.get_context("spawn")
"""A fork would inherit the locks and threads of whatever tests this process has run before."""
PATIENT = TransferSettings(read_timeout=60, attempts=10, deadline=240)
"""Everybody reads every record: the server of the tests, which is one process, has thousands of requests to answer."""


@dataclass(frozen=True)
class Race:
    """Where, how many at the same moment, and in how many processes."""

    place: RegistrySettings
    many: int
    processes: int = 4

    def at_once(self, act: Callable[[Store, int], object]) -> None:
        """``act`` for 0, 1, 2 ... at the same moment: an equal share of them in the threads of each process."""
        together = SPAWN.Barrier(self.processes)
        workers = [SPAWN.Process(target=self.share, args=(act, first, together)) for first in range(self.processes)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert [worker.exitcode for worker in workers] == [0] * self.processes

    def share(self, act: Callable[[Store, int], object], first: int, together: Barrier) -> None:
        """What one process does."""
        share = self.many // self.processes
        store, start = open_store(self.place), threading.Barrier(share, action=together.wait)

        def one(number: int) -> None:
            start.wait()
            act(store, number)

        with ThreadPoolExecutor(share) as threads:
            for done in [threads.submit(one, number) for number in range(first, self.many, self.processes)]:
                done.result()


@pytest.fixture(
    params=[
        pytest.param(("directory", 20), id="directory, 20"),
        pytest.param(("directory", 100), id="directory, 100", marks=pytest.mark.slow),
        pytest.param(("s3", 8), id="s3, 8", marks=pytest.mark.slow),
        pytest.param(("s3", 100), id="s3, 100", marks=[pytest.mark.slow, pytest.mark.timeout(1500)]),
    ]
)
def race(request: pytest.FixtureRequest, tmp_path: Path) -> Race:
    """In an empty store."""
    kind, many = request.param
    if kind == "directory":
        processes = 2 if many == 20 else 4  # each takes two seconds to start
        return Race(RegistrySettings(path=tmp_path / "registry"), many, processes)
    server = request.getfixturevalue("s3_server")
    return Race(server.settings(tmp_path, uuid4().hex, transfer=PATIENT), many)


# Acts are of this module, and are given the policy: another process would make one with other keys.


def _promote(under: Policy, candidates: list[Candidate], judged: list[Judgement], store: Store, number: int) -> None:
    promote(store, candidates[number], judged[number], under, at())


def _agree(under: Policy, candidate: Candidate, judged: Judgement, store: Store, number: int) -> None:
    store_approval(store, approval(store, candidate, f"approver {number}", under, base=0))
    assert promote(store, candidate, judged, under, at()).number == 1


def _promote_or_go_back(under: Policy, newer: Candidate, judged: Judgement, store: Store, number: int) -> None:
    try:
        if number % 2:
            go_back(store, "1", f"approver {number}", under)
        else:
            promote(store, newer, judged, under, at())
    except EvenkeelError as refused:
        assert "is the champion already" in str(refused)


def test_of_many_promotions_one_wins_and_every_one_is_recorded(race: Race) -> None:
    store = open_store(race.place)
    candidates = [propose(store, float(number)) for number in range(race.many)]
    judged = [judgement(store, candidate) for candidate in candidates]
    for candidate in candidates:
        store_approval(store, approval(store, candidate, base=0))
    race.at_once(partial(_promote, ONE, candidates, judged))
    log = read_history(store).records  # numbered without a hole, and each names the hash of the one before it
    assert [record.number for record in log] == list(range(1, race.many + 1))
    assert [record.outcome for record in log] == ["promoted"] + ["superseded"] * (race.many - 1)
    assert {record.digest for record in log} == {candidate.digest for candidate in candidates}
    alias = read_alias(store, CHAMPION)
    assert alias == champion(store)
    assert alias is not None and (alias.digest, alias.record) == (log[0].digest, 1)


@pytest.mark.slow
def test_of_many_approvals_of_one_candidate_comes_one_record(race: Race) -> None:
    store = open_store(race.place)
    candidate = propose(store)
    judged = judgement(store, candidate)
    race.at_once(partial(_agree, ONE, candidate, judged))
    (record,) = read_history(store).records
    assert record.outcome == "promoted"
    assert len(approvals_of(store, candidate.digest)) == race.many
    assert read_alias(store, CHAMPION) == champion(store)


@pytest.mark.slow
def test_promotions_and_roll_backs_at_the_same_moment_leave_one_champion(tmp_path: Path) -> None:
    race = Race(RegistrySettings(path=tmp_path / "registry"), 100)
    store = open_store(race.place)
    for number in range(2):
        approve(store, propose(store, float(number)))
    newer = propose(store, 2.0)
    judged = judgement(store, newer)
    store_approval(store, approval(store, newer))
    race.at_once(partial(_promote_or_go_back, ONE, newer, judged))
    history = read_history(store)
    assert sum(record.base == 2 and record.effective for record in history.records) == 1
    assert read_json(tmp_path / "registry/objects" / CHAMPION)["record"] == history.base
