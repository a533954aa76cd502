"""A stage's resume state in a bucket: when a pod is lost, the next one goes on from its newest checkpoint.

A parcel is put whenever a checkpoint is complete. It holds what the folder of `components.resume` held at that moment:
every checkpoint that the run may still need, and the logs up to the newest. A pod that dies while it sends leaves the
parcel before, and files without a manifest, which the next parcel may use.

Every pod that begins is a writer of its own, with a number that no other has (a conditional write sees to that). Its
parcels bear that number, and the next writer starts from those of the highest number that has any. So an old pod that
is not quite dead cannot disturb its successor: whatever it still puts counts as older. It stops when it sees that it
has been succeeded, which it looks for before it puts a parcel and before it removes one. Should it remove a file in the
moment between, then one that its own parcels no longer name; a successor that needs it finds it missing with its next
checkpoint, and sends it again.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from components.directories import write_directory
from components.errors import CorrectableError, InputError, PeerLost
from components.files import dump_json, os_errors, read_json
from components.pods.parcels import Parcel, Sender, fetch, parcels, read, remove
from components.registry.base import Conflict
from components.registry.s3.bucket import Bucket
from components.registry.s3.objects import Objects
from components.registry.s3.probe import require
from components.resume import LOG, NAME

STATE = "state.json"
"""In the checkpoints of a training run; those of other stages (`components.resume.run_steps`) need no older ones."""
PARCEL = re.compile(r"[0-9]{6,}-[0-9]{8,}\.json")
KEEP = 2
"""Parcels that stay: the newest, and one to fall back to."""


class Checkpoint(NamedTuple):
    """One that is complete, and which folder it is: that of a step may be written again."""

    step: int
    folder: tuple[int, int]


class Writer:
    """One pod's right to put the state.

    Raises:
        InputError: the server does not keep conditional writes apart.
    """

    def __init__(self, bucket: Bucket, who: str) -> None:
        require(bucket)
        self._claims = Objects(bucket, "writers/")
        while True:
            self.number = self._newest() + 1
            try:
                self._claims.create(f"{self.number:06d}", dump_json({"who": who}).encode())
                return
            except Conflict:  # another one was quicker
                continue

    def _newest(self) -> int:
        return max((int(key) for key in self._claims.keys("") if key.isdecimal()), default=0)

    def check(self) -> None:
        """Raise where another pod has begun since.

        Raises:
            PeerLost: one has.
        """
        if self._newest() > self.number:
            how = "nothing: the run goes on there"
            raise PeerLost("another pod has taken this run over", where=f"writer {self.number}", how=how)


class State:
    """Puts the folder of a stage's checkpoints into a bucket, and takes it from there."""

    def __init__(self, bucket: Bucket, folder: Path, writer: Writer) -> None:
        self._bucket, self._folder, self._writer = bucket, folder, writer
        self._sender = Sender(bucket)
        self._kept: list[Parcel] = []
        self._stored: Checkpoint | None = None

    # Taking

    def restore(self) -> int | None:
        """Bring the newest complete state here, unless there is one; the step of its newest checkpoint. None where the
        bucket has no state at all.

        One that is damaged is said, and passed over for the one before.

        Raises:
            InputError: none of those that are there can be brought here. The run does not start over for that: what is
                wrong may be the bucket's rights, or this disk, and its own checkpoints would replace those there.
        """
        if self._folder.exists():
            return None
        names, reason = self._names(), ""
        for name in reversed(names):
            try:
                parcel = read(self._bucket, name)
                write_directory(self._folder, partial(fetch, self._bucket, parcel))
                self._kept, self._stored = [parcel], self._newest()
                return None if self._stored is None else self._stored.step
            except CorrectableError as error:
                reason = str(error)
                print(f"the state {name} is of no use: {reason}", file=sys.stderr, flush=True)
        if not names:
            return None
        where = self._bucket.where()
        how = f"fix that and submit the run again, or remove {where} to have it start over"
        raise InputError(f"none of the {len(names)} states of this run can be used: {reason}", where=where, how=how)

    def _names(self) -> list[str]:
        """Of all states in the bucket, the newest last. Other objects next to them are ignored."""
        return [name for name in parcels(self._bucket) if PARCEL.fullmatch(name)]

    # Putting

    def put(self) -> bool:
        """Put the newest checkpoint, and what goes with it, unless the bucket has it; then what is no longer needed
        goes.

        Raises:
            PeerLost: another pod has taken the run over.
            Unavailable: the server does not answer.
            InputError: something cannot be read, or the server refuses.
        """
        newest = self._newest()
        if newest is None or newest == self._stored:
            return False
        self._writer.check()
        try:
            with self._files(newest.step) as files:
                if self._newest() != newest:  # folders may have been going while their files were listed
                    return self.put()
                name = name_of(self._writer.number, newest.step)
                parcel = self._sender.put(name, files, {"step": newest.step})
        except CorrectableError:
            if self._newest() == newest:
                raise
            return self.put()  # a newer one has come, and what belongs to the older is being removed
        self._stored = newest
        self._kept = [*(one for one in self._kept if one.name != name), parcel][-KEEP:]
        self._tidy()
        return True

    def _tidy(self) -> None:
        """Remove what no parcel needs that is kept. A parcel of a later writer is not touched, whatever happens."""
        self._writer.check()
        names, needed = {one.name for one in self._kept}, {blob for one in self._kept for blob in one.blobs}
        old = [
            name for name in self._names() if name not in names and int(name.partition("-")[0]) <= self._writer.number
        ]
        blobs = {blob for name in old for blob in self._blobs(name)}
        remove(self._bucket, old, blobs - needed)

    def _blobs(self, name: str) -> set[str]:
        """Those that a parcel names; of a damaged manifest they are unknown."""
        try:
            return read(self._bucket, name).blobs
        except InputError as error:
            print(f"the state {name} goes, and its files stay: {error}", file=sys.stderr, flush=True)
            return set()

    def _newest(self) -> Checkpoint | None:
        found = (NAME.fullmatch(path.name) for path in self._folder.glob("step-*"))
        step = max((int(match[1]) for match in found if match), default=None)
        if step is None:
            return None
        with suppress(FileNotFoundError):
            stat = (self._folder / f"step-{step:06d}").stat()
            return Checkpoint(step, (stat.st_ino, stat.st_mtime_ns))
        return self._newest()  # it has just been removed: there is a newer one

    @contextmanager
    def _files(self, step: int) -> Iterator[dict[str, Path]]:
        """The files of the state as of a checkpoint, by their names in its folder."""
        newest = self._folder / f"step-{step:06d}"
        steps, lines = _of_training(newest, step) if (newest / STATE).exists() else ({step}, {LOG: step})
        folders = [self._folder / f"step-{one:06d}" for one in sorted(steps)]
        files = [self._folder / "identity.json", *(path for folder in folders for path in folder.rglob("*"))]
        found = {path.relative_to(self._folder).as_posix(): path for path in files if not path.is_dir()}
        with tempfile.TemporaryDirectory(prefix="evenkeel-") as folder:
            for name, count in lines.items():
                if count:
                    found[name] = _first_lines(self._folder / name, count, Path(folder) / name)
            yield found


def _of_training(newest: Path, step: int) -> tuple[set[int], dict[str, int]]:
    """Steps of the checkpoints that a training run may still need, and the lines of its logs that belong to them."""
    state = read_json(newest / STATE)
    steps = {step, *(int(one["step"]) for one in state["saved"])}
    return steps, {"records.jsonl": step, "ledger.jsonl": int(state["entries"])}


def _first_lines(log: Path, count: int, copy: Path) -> Path:
    """A copy of the first lines of a log that grows."""
    with os_errors("copy", log), log.open("rb") as source, copy.open("wb") as target:
        target.writelines(islice(source, count))
    return copy


def name_of(writer: int, step: int) -> str:
    """Of a parcel. The newest comes last: that of the last writer, whatever step others have come to."""
    return f"{writer:06d}-{step:08d}.json"
