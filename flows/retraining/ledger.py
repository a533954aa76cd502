"""What is known from earlier runs: a log of files, and logs of runs that started and that ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from components.errors import InputError
from components.files import append_line, cut_torn_line, read_jsonl, write_jsonl
from components.registry.clock import stamp, utc_now
from flows.host.processes import lock_file

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class JoinedFile:
    """A file that joined. ``replaces`` is the digest of the file that it is a newer version of.

    ``at`` is an ISO 8601 time in UTC, ``name`` what the file was called then.
    """

    sha256: str
    name: str
    bytes: int
    rows: int
    at: str
    replaces: str | None = None


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that ended with a result.

    ``key`` stands for all that its training depended on, ``files`` are the digests of the files that joined permanently
    with it. Logs of earlier versions have the number of rows of the log of files, ``seen``, instead.
    """

    run_id: str
    key: str
    champion: str | None
    candidate: str | None
    reason: str
    at: str
    files: list[str] | None = None
    seen: int = 0


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run that started: what is needed to continue it, and to record its end."""

    run_id: str
    key: str
    champion: str | None
    lines: list[str]
    """What was printed before the run."""
    files: list[str] | None = None
    """Digests of the files that join permanently with its end."""
    seen: int = 0

    def ended(self, candidate: str | None, reason: str) -> FinishedRun:
        """The finished run with this result, ended now."""
        at = stamp(utc_now())
        return FinishedRun(self.run_id, self.key, self.champion, candidate, reason, at, self.files, self.seen)


class Ledger:
    """The logs of one nightly configuration, in `.state/nightly/<name>/`."""

    def __init__(self, project: Path, name: str) -> None:
        self.project = project
        self.folder = project / ".state" / "nightly" / name
        self._seen, self._nights = self.folder / "seen.jsonl", self.folder / "nights.jsonl"
        self._begun = self.folder / "begun.jsonl"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Allow one run at a time. The lock ends with the process, however that ends.

        Raises:
            InputError: another run of this name is in progress.
        """
        with lock_file(self.folder / "lock") as lock:
            if not lock.take():
                how = "this night is left out; the next one takes in all that has arrived"
                raise InputError(f"a night is at work in process {lock.owner}", where=self.folder, how=how)
            yield

    def part(self, digest: str) -> Path:
        """Where the copy of a file that joined is."""
        return self.folder / "parts" / f"{digest}.jsonl"

    def seen(self) -> list[JoinedFile]:
        """Every file that joined, in that order."""
        return _read(self._seen, JoinedFile)

    @property
    def settled(self) -> set[str]:
        """Digests of the files that were part of a finished run: they have joined permanently."""
        runs = self.finished_runs()
        counted = max((run.seen for run in runs), default=0)
        return {*(row.sha256 for row in self.seen()[:counted]), *(one for run in runs for one in run.files or ())}

    def unsettled(self) -> list[str]:
        """Digests of the files that have joined, and will have done so permanently when a run with them has ended."""
        settled = self.settled
        return [row.sha256 for row in self.seen() if row.sha256 not in settled]

    def keep(self, digests: set[str]) -> list[JoinedFile]:
        """Remove the files that have not joined permanently, except those of these digests; returns what is gone.

        Call it with the lock held.
        """
        seen, settled, kept, lost = self.seen(), self.settled, [], set()
        for row in seen:
            if row.sha256 in settled or (row.sha256 in digests and row.replaces not in lost):
                kept.append(row)
            else:  # a version of what is gone is forgotten too: it may be one of what was there before
                lost.add(row.sha256)
        if lost:
            write_jsonl(self._seen, [asdict(row) for row in kept])
        return [row for row in seen if row.sha256 in lost - digests]

    def finished_runs(self) -> list[FinishedRun]:
        """Every finished run, in order."""
        return _read(self._nights, FinishedRun)

    def started_runs(self) -> dict[str, StartedRun]:
        """The latest start of every run, by the run's id."""
        return {row.run_id: row for row in _read(self._begun, StartedRun)}

    def add(self, row: JoinedFile | StartedRun | FinishedRun) -> None:
        """Append a row. Call it with the lock held."""
        path = {JoinedFile: self._seen, StartedRun: self._begun, FinishedRun: self._nights}[type(row)]
        cut_torn_line(path)
        append_line(path, asdict(row))


def current(seen: list[JoinedFile]) -> list[JoinedFile]:
    """The files whose rows are trained on: a newer version takes the place of the one that it continues."""
    order: dict[str, JoinedFile] = {}
    for row in seen:
        place = next((key for key, kept in order.items() if kept.sha256 == row.replaces), row.sha256)
        order[place] = row
    return list(order.values())


def _read(path: Path, kind: type[Row]) -> list[Row]:
    """The rows of a log; a line that is none, as after an edit, is an error."""
    cut_torn_line(path)
    if not path.exists():
        return []
    how = "restore it from a backup, or move the folder away to start over with the configured source"
    rows: list[dict[str, Any]] = list(read_jsonl(path, how=how))
    try:
        return [kind(**row) for row in rows]
    except TypeError as error:
        raise InputError(f"not a row of this log: {error}", where=path, how=how) from error
