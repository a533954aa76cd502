"""The log of rank 0, copied line by line however often it breaks off, whatever clock its node has."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from components.launch.kubernetes.api import Unreachable
from components.launch.kubernetes.following import Follower, moment

FIRST = [
    "2026-03-29T01:59:58.100000000{zone} one",
    "2026-03-29T01:59:59.000000001{zone} two",
    "2026-03-29T01:59:59.000000001{zone} two, in the same nanosecond",
]
THEN = ["2026-03-29T01:59:59.000000002{zone} three", "2026-03-29T01:59:59.900000000{zone} four"]


class Breaking:
    """A node's log, whose connection breaks off after so many lines; it gives whole seconds again, as servers do."""

    def __init__(self, *looks: list[str]) -> None:
        self.looks, self.asked = list(looks), list[datetime | None]()

    def log(self, pod: str, container: str, *, since: datetime | None, **_: Any) -> Iterator[str]:
        self.asked.append(since)
        yield from self.looks.pop(0)
        if self.looks:
            raise Unreachable("broke off")


def copied(cluster: Breaking, target: Path) -> list[str]:
    follower = Follower(cluster, "demo-1", "uid", "train", target)  # type: ignore[arg-type]
    while cluster.looks:
        try:
            follower._copy("demo-1-learner-0-0-a", follow=True)
        except Unreachable:
            continue
    return target.read_text("utf-8").splitlines()


@pytest.mark.parametrize("zone", ["Z", "+02:00", "-05:30"])
def test_a_log_that_broke_off_goes_on_where_it_was_in_every_time_zone(zone: str, tmp_path: Path) -> None:
    first, then = ([line.format(zone=zone) for line in part] for part in (FIRST, THEN))
    cluster = Breaking(first, [*first, *then])
    assert copied(cluster, tmp_path / "log") == ["one", "two", "two, in the same nanosecond", "three", "four"]
    assert cluster.asked == [None, datetime.fromisoformat(f"2026-03-29T01:59:59{zone}").astimezone(UTC)]


def test_a_node_that_puts_its_clock_back_loses_no_line(tmp_path: Path) -> None:
    """From summer to winter time: later lines look earlier."""
    before, after = "2026-10-25T02:59:59.5+02:00 before", "2026-10-25T02:00:00.5+01:00 after"
    assert copied(Breaking([before], [before, after]), tmp_path / "log") == ["before", "after"]


def test_a_line_of_a_node_without_a_time_is_copied_once_and_ends_nothing(tmp_path: Path) -> None:
    gone, line = "unable to retrieve container logs for containerd://abc", "2026-01-01T00:00:00.1Z on it goes"
    assert copied(Breaking([gone], [gone], [line]), tmp_path / "log") == [gone, "on it goes"]


def test_moments_know_nanoseconds() -> None:
    early, late = moment("2026-01-01T00:00:00.000000001Z"), moment("2026-01-01T01:00:00.000000002+01:00")
    assert early is not None and late is not None and early < late
    assert moment("2026-01-01T00:00:00Z") == moment("2026-01-01T00:00:00.0Z")
