"""A watch is a hint: it may break in any way, and nothing is missed nor is the server run down."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from components.launch.kubernetes.api import Cluster, Unreachable
from components.launch.kubernetes.observed import changes
from tests.kubernetes.fake_api import FakeApi, Fault, answers
from tests.kubernetes.objects import jobset

WATCH = {"method": "GET", "path": "watch=true"}
SOON = 20.0
"""Seconds within which a change must be reported in these tests, where only a watch can report it."""


def status(api: FakeApi, word: str) -> None:
    """Something happens to the JobSet."""
    api.put("jobsets", {**jobset(), "status": {"terminalState": word}})


class Looker:
    """Looks after every hint, as a launcher does, and records what it saw."""

    def __init__(self, cluster: Cluster, most: float = 600.0) -> None:
        self.saw: list[str | None] = []
        self._cluster, self._most = cluster, most
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for _ in changes(self._cluster, "demo-1", self._most):
            try:
                found = self._cluster.jobset("demo-1")
            except Unreachable:
                continue
            self.saw.append(found["status"]["terminalState"] if found else None)
            if self.saw[-1] == "Completed":
                return

    def sees(self, word: str | None) -> None:
        """Wait until it has."""
        wait(lambda: word in self.saw)

    def ends(self) -> None:
        self._thread.join(SOON)
        assert not self._thread.is_alive()


def wait(true: Callable[[], bool]) -> None:
    give_up = time.monotonic() + SOON
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.01)


@pytest.fixture
def running(api: FakeApi) -> None:
    status(api, "")


@pytest.mark.usefixtures("running")
def test_a_change_is_reported_when_it_happens(api: FakeApi, cluster: Cluster) -> None:
    looker = Looker(cluster)
    looker.sees("")
    wait(lambda: api.count("watch", "jobsets") == 1)
    status(api, "Completed")
    looker.ends()


def test_a_jobset_that_comes_and_goes_is_reported(api: FakeApi, cluster: Cluster) -> None:
    looker = Looker(cluster)
    looker.sees(None)
    status(api, "Failed")
    looker.sees("Failed")
    api.store.remove(("jobsets", "evenkeel", "demo-1"))
    wait(lambda: looker.saw[-1] is None)
    status(api, "Completed")
    looker.ends()


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", body=answers.GONE),
        Fault("event", body=answers.GONE, after=1),
        Fault("event", body=answers.status(500, "InternalError", "etcd event received with PrevKv=nil")),
        Fault("event", body={}),
        Fault("cut"),
        Fault("dropped"),
        Fault("text"),
        Fault("status", body=answers.status(503, "ServiceUnavailable", "apiserver not ready")),
    ],
    ids=["410", "410 within", "500 within", "nothing within", "cut", "dropped", "html", "503"],
)
@pytest.mark.usefixtures("running")
def test_whatever_breaks_a_watch_the_change_meanwhile_is_not_missed(
    api: FakeApi, cluster: Cluster, fault: Fault
) -> None:
    fault.method, fault.path, fault.times = "GET", "watch=true", 1
    fault.meanwhile = lambda: status(api, "Completed")
    api.faults.add(fault)
    Looker(cluster).ends()


@pytest.mark.usefixtures("running")
def test_a_change_between_a_look_and_the_watch_is_not_missed(api: FakeApi, cluster: Cluster) -> None:
    hints = changes(cluster, "demo-1", 600.0)
    next(hints)
    status(api, "Completed")
    next(hints)
    assert api.count("watch", "jobsets") == 1


@pytest.mark.usefixtures("running")
def test_a_server_that_is_restarted_is_watched_again(api: FakeApi, cluster: Cluster) -> None:
    looker = Looker(cluster)
    wait(lambda: api.count("watch", "jobsets") == 1)
    api.stop()
    time.sleep(0.5)
    api.start()
    wait(lambda: api.count("watch", "jobsets") >= 2)
    status(api, "Completed")
    looker.ends()


@pytest.mark.usefixtures("running")
def test_without_the_right_to_watch_it_is_looked_from_time_to_time(api: FakeApi, cluster: Cluster) -> None:
    api.denied = {("jobset.x-k8s.io", "jobsets", "watch")}
    looker = Looker(cluster, most=0.05)
    looker.sees("")
    status(api, "Completed")
    looker.ends()


@pytest.mark.usefixtures("running")
def test_where_nothing_happens_it_is_looked_all_the_same(api: FakeApi, cluster: Cluster) -> None:
    """Pods change without their JobSet."""
    hints = changes(cluster, "demo-1", 1.0)
    for _ in range(4):
        next(hints)
    assert api.count("watch", "jobsets") <= 3


class Broken:
    """A cluster whose watches end as `ways` say, and count."""

    def __init__(self, ways: list[Callable[[], Iterator[dict[str, Any]]]]) -> None:
        self.ways, self.watched = ways, 0

    def watch(self, name: str, seconds: float) -> Iterator[dict[str, Any]]:
        self.watched += 1
        return self.ways[(self.watched - 1) % len(self.ways)]()


def fails() -> Iterator[dict[str, Any]]:
    raise Unreachable("no connection")
    yield {}


def ends() -> Iterator[dict[str, Any]]:
    return iter(())


def repeats() -> Iterator[dict[str, Any]]:
    """The present state, and then the connection ends."""
    yield {"type": "ADDED", "object": {"metadata": {"uid": "u", "resourceVersion": "7"}}}


@pytest.mark.parametrize("way", [fails, ends, repeats])
def test_a_watch_that_breaks_at_once_every_time_is_not_opened_all_the_time(
    way: Callable[[], Iterator[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, high: high)
    waited: list[float] = []
    hints = changes(Broken([way]), "demo-1", most=10.0, sleep=waited.append)
    for _ in range(40):
        next(hints)
    pauses = [pause for pause in waited if pause > 0.2]
    assert pauses[-1] > 2.5  # they grow, up to ``most``
    assert max(pauses) <= 10.0
    assert sum(waited) > 100


def test_bookmarks_and_states_that_are_known_are_no_change() -> None:
    first = {"type": "ADDED", "object": {"metadata": {"uid": "u", "resourceVersion": "7"}}}
    mark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}
    gone = {"type": "DELETED", "object": {"metadata": {"uid": "u", "resourceVersion": "10"}}}
    sent: list[str] = []

    def events() -> Iterator[dict[str, Any]]:
        for event in (first, mark, first, gone):
            sent.append(event["type"])
            yield event

    hints = changes(Broken([events]), "demo-1", sleep=lambda _: None)
    next(hints), next(hints)
    assert sent == ["ADDED"]
    next(hints)
    assert sent == ["ADDED", "BOOKMARK", "ADDED", "DELETED"]
