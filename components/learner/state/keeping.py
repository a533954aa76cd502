"""A state as a learner keeps it: saved at once, or copied now and written later by every rank next to its work."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed

from components.learner.group import is_lost
from components.learner.ranks import ALONE, Ranks
from components.learner.state.contents import STEP, WEIGHT, Contents, Piece
from components.learner.state.relay import Group, blind_to, token_in
from components.learner.state.shards import stored
from components.learner.state.store import Pieces, Reach, load, save

NOTHING, OVER = "nothing", "over"
"""What rank 0 says instead of a folder: that it has none this time, and that there will be none any more."""


class _NoFolderError(Exception):
    """Rank 0 has said so."""


class State:
    """Saves and restores ``contents``. With several ranks all of them call `save`, `snapshot`, `load` and `close`.

    A copy is written by the call that `snapshot` returns on rank 0, from whatever thread: it has the other ranks
    write theirs, for which each has a thread, and all a process group that nothing else uses.
    """

    def __init__(self, contents: Contents, ranks: Ranks = ALONE) -> None:
        self._contents, self._ranks = contents, ranks
        self._memory: dict[str, Tensor] = {}
        self._copy: Pieces = {}
        self._copies, self._copied = 0, threading.Condition()  # taken so far, the same number on all ranks
        self._writer = threading.Thread(target=self._follow, name="checkpoint", daemon=True)
        if ranks.rank > 0:
            self._writer.start()

    def save(self, folder: Path) -> None:
        """Write it into a folder of its own, bit-exact.

        Raises:
            OSError: a rank could not; on rank 0.
        """
        with suppress(_NoFolderError):
            self._write(self._reach(folder, self._ranks.control), self._pieces())

    def snapshot(self, folder: Path) -> Callable[[], None]:
        """Copy what `save` would write now; the call that is returned writes it, before the next snapshot is taken.

        All copies go to the same memory: memory that is new to the process takes longer to get than to fill.
        """
        pieces = self._pieces()
        for name, piece in pieces.items():
            if name not in self._memory:
                self._memory[name] = torch.empty_like(piece.values, device="cpu")
            self._memory[name].copy_(piece.values)
        with self._copied:
            self._copy = {name: piece.to(self._memory[name]) for name, piece in pieces.items()}
            self._copies += 1
            self._copied.notify_all()
        number = self._copies
        return lambda: self._write_copy(folder, number)

    def check(self, folder: Path) -> None:
        """Refuse what `load` could not read; not collective.

        Raises:
            InputError: a file is missing or damaged.
            ValueError: the state is another model's.
        """
        found, own = stored(folder), self._contents.shapes
        shapes = {key.removeprefix(WEIGHT): shape for key, shape in found.shapes.items() if key.startswith(WEIGHT)}
        if shapes.keys() != own.keys():
            raise ValueError(f"{folder} belongs to another model: {sorted(shapes.keys() ^ own.keys())[:5]}")
        for name, shape in own.items():
            if shape != shapes[name]:
                here, there = list(shape), list(shapes[name])
                raise ValueError(f"{folder} belongs to another model: {name} is {there} there and {here} here")
        counts = {found.updates.get(name) for name in own}
        if self._contents.as_one and len(counts) > 1:
            raise ValueError(f"{folder}: the parameters have made different numbers of updates: {counts}")

    def load(self, folder: Path) -> None:
        """Read what `save` wrote, with whatever sharding and number of ranks; `check` comes first, on rank 0."""
        found = self._ranks.of_first(lambda: stored(folder))
        reach = self._reach(folder, self._ranks.control)
        self._contents.reset(found.updates)
        load(self._contents.pieces(), found, reach)

    def close(self) -> None:
        """End the threads of the ranks."""
        if self._ranks.rank > 0:
            self._writer.join()
        elif self._ranks.writing is not None:
            distributed.broadcast_object_list([OVER], src=0, group=self._ranks.writing)

    def _pieces(self) -> Pieces:
        """This rank's part; the numbers of updates are rank 0's."""
        found = self._contents.pieces()
        for name, count in self._contents.updates().items() if self._ranks.rank == 0 else ():
            found[f"{STEP}{name}"] = Piece.of(torch.tensor([count], dtype=torch.float32))
        return found

    def _write_copy(self, folder: Path, number: int) -> None:
        reach = self._reach(folder, self._ranks.writing, number)
        self._write(reach, self._copy)

    def _write(self, reach: Reach, pieces: Pieces) -> None:
        try:
            save(pieces, reach)
        except OSError:  # of any rank: rank 0 reports it
            if self._ranks.rank == 0:
                raise

    def _reach(self, folder: Path, group: Group, copies: int = 0) -> Reach:
        """The folder that rank 0 names, as this rank gets at it, once this rank has taken so many copies as rank 0
        says: it may still be copying when rank 0 is already writing. Collective."""
        if group is None:
            folder.mkdir(exist_ok=True)
            return Reach(folder)
        order: list[Any] = [NOTHING]
        with ExitStack() as stack:
            try:
                if self._ranks.rank == 0:
                    order = [(folder, stack.enter_context(token_in(folder)), copies)]
            finally:
                distributed.broadcast_object_list(order, src=0, group=group)
            if order[0] in (NOTHING, OVER):
                raise _NoFolderError(order[0])
            folder, token, copies = order[0]
            blind = blind_to(folder / token, group)
        with self._copied:
            self._copied.wait_for(lambda: self._copies >= copies)
        return Reach(folder, self._ranks.rank, self._ranks.size, group, tuple(blind))

    def _follow(self) -> None:
        """The thread of ranks 1 and up. A bug ends the process: rank 0 finds it gone, and its log states why."""
        try:
            while True:
                try:
                    self._write_copy(Path(), 0)
                except _NoFolderError as said:
                    if str(said) == OVER:
                        return
        except BaseException as error:
            if not is_lost(error):
                traceback.print_exc()
                os._exit(1)
