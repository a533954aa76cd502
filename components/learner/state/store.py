"""DCP's writer and reader of `components.learner.state.shards`.

Ranks that do not see the folder send their file to rank 0 while it is written, and get what they read from it, a few
million elements at a time: no rank holds more than its part.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner, create_default_local_load_plan
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner
from torch.distributed.checkpoint.state_dict_loader import load as dcp_load
from torch.distributed.checkpoint.state_dict_saver import save as dcp_save
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from components.learner.state.contents import WEIGHT, Piece
from components.learner.state.relay import Group, receive_file, receive_values, send_file, send_values, write_file
from components.learner.state.shards import AT_ONCE, Stored, encoded, name_of, stored
from components.policy.lazily import Lazily

Pieces = Mapping[str, Piece]
warnings.filterwarnings(
    "ignore", "torch.distributed is disabled, unavailable or uninitialized"
)  # one process needs none


class Reach(NamedTuple):
    """A folder as this rank gets at it; ``blind`` are the numbers of the ranks that do not see it."""

    folder: Path
    rank: int = 0
    ranks: int = 1
    group: Group = None
    blind: tuple[int, ...] = ()


def save(pieces: Pieces, reach: Reach) -> None:
    """Write every rank's part; collective. No part may be there twice.

    Raises:
        OSError: on every rank, the first one that a rank met.
    """
    planner = DefaultSavePlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
    with _unwrapped():
        dcp_save(
            dict(pieces),
            storage_writer=_Writer(pieces, reach),
            planner=planner,
            process_group=reach.group,
            no_dist=reach.group is None,
        )


def load(pieces: Pieces, found: Stored, reach: Reach) -> None:
    """Read every rank's part into its place; collective. Other errors than those of `save` are bugs: `stored` has
    looked at the files."""
    with _unwrapped():
        dcp_load(
            dict(pieces),
            storage_reader=_Reader(found, reach),
            planner=_LoadPlanner(),
            process_group=reach.group,
            no_dist=reach.group is None,
        )


def read_tensors(folder: Path, wanted: Callable[[str], bool] = lambda _: True) -> dict[str, Tensor]:
    """Whole tensors of a state by name, in host memory, in this process alone.

    Raises:
        InputError: see `stored`.
    """
    return _read(stored(folder), folder, wanted)


def _read(found: Stored, folder: Path, wanted: Callable[[str], bool]) -> dict[str, Tensor]:
    whole: dict[str, Tensor] = {}
    for name, tensor in found.metadata.state_dict_metadata.items():
        if wanted(name):
            whole[name] = torch.empty(found.shapes[name], dtype=tensor.properties.dtype)  # type: ignore[union-attr]
    load({name: Piece.of(tensor) for name, tensor in whole.items()}, found, Reach(folder))
    return whole


class StoredWeights(Lazily):
    """The whole weights of a state by parameter name, each read when it is used, in this process alone.

    Raises:
        InputError: see `stored`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._found = folder, stored(folder)
        self.names = [name.removeprefix(WEIGHT) for name in self._found.shapes if name.startswith(WEIGHT)]

    def __getitem__(self, name: str) -> Tensor:
        key = f"{WEIGHT}{name}"
        return _read(self._found, self._folder, lambda other: other == key)[key]


@contextmanager
def _unwrapped() -> Iterator[None]:
    """Raise what happened on a rank, instead of DCP's list of it."""
    try:
        yield
    except CheckpointException as error:
        raise next(iter(error.failures.values()))[0] from error


class _Writer(FileSystemWriter):
    """One file a rank, without DCP's ``.metadata``, which is a pickle."""

    def __init__(self, pieces: Pieces, reach: Reach) -> None:
        super().__init__(reach.folder)
        self._pieces, self._reach = pieces, reach

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        folder, rank, ranks, group, blind = self._reach
        chunks = encoded({item.index.fqn: self._pieces[item.index.fqn] for item in plan.items})
        if rank in blind:
            send_file(chunks, group)
            return _done([])
        try:
            write_file(folder / name_of(rank, ranks), chunks)
        finally:
            for other in blind if rank == 0 else ():
                receive_file(folder / name_of(other, ranks), other, group)
        return _done([])

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Nothing is left to write."""


class _Reader(FileSystemReader):
    """Reads the parts of files that this rank needs, and on rank 0 those that others need who do not see them."""

    def __init__(self, found: Stored, reach: Reach) -> None:
        super().__init__(reach.folder)
        self._found, self._reach = found, reach
        self._plans: list[LoadPlan] = []  # of all ranks, on rank 0

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        return self._found.metadata

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        self._plans = plans
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        rank, blind = self._reach.rank, self._reach.blind
        with ExitStack() as stack:
            files = _Files(self._found, self._reach.folder, stack)
            try:
                for item in plan.items:
                    for start, length in _parts(item):
                        values = self._received(item, length) if rank in blind else files.read(item, start, length)
                        planner.resolve_tensor(item).narrow(0, start, length).copy_(values)
            finally:
                for other in blind if rank == 0 else ():
                    self._serve(other, files)
        return _done(None)

    def _received(self, item: ReadItem, length: int) -> Tensor:
        return receive_values(length, self._dtype(item), self._reach.group)

    def _serve(self, rank: int, files: _Files) -> None:
        """Send a rank what it is about to read."""
        failed: Exception | None = None
        for item in self._plans[rank].items:
            for start, length in _parts(item):
                values = torch.zeros(length, dtype=self._dtype(item))
                try:
                    values = values if failed is not None else files.read(item, start, length)
                except (OSError, SafetensorError) as error:
                    failed = error
                send_values(values, rank, self._reach.group)
        if failed is not None:
            raise failed

    def _dtype(self, item: ReadItem) -> torch.dtype:
        found: Any = self._found.metadata.state_dict_metadata[item.storage_index.fqn]
        dtype: torch.dtype = found.properties.dtype
        return dtype


class _Files:
    """The files of a state, each opened when it is needed first."""

    def __init__(self, found: Stored, folder: Path, stack: ExitStack) -> None:
        self._found, self._folder, self._stack = found, folder, stack
        self._open: dict[str, Any] = {}

    def read(self, item: ReadItem, start: int, length: int) -> Tensor:
        """Elements of an item, counted from where it begins."""
        name = self._found.file_of(item.storage_index)
        if name not in self._open:
            self._open[name] = self._stack.enter_context(safe_open(self._folder / name, "pt"))
        begin = item.storage_offsets[0] + start
        values: Tensor = self._open[name].get_slice(item.storage_index.fqn)[begin : begin + length]
        return values


class _LoadPlanner(LoadPlanner):
    """DCP's own takes tensors alone."""

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        assert metadata is not None
        self._pieces, self._metadata = state_dict, metadata

    def create_local_plan(self) -> LoadPlan:
        return create_default_local_load_plan(self._pieces, self._metadata)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return global_plan

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: Any) -> None:
        raise AssertionError("a state holds tensors alone")

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        values: Tensor = self._pieces[read_item.dest_index.fqn].values
        return values.narrow(0, read_item.dest_offsets[0], read_item.lengths[0])

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Nothing to do: it was read into its place."""


def _parts(item: ReadItem) -> Iterator[tuple[int, int]]:
    """Start and length of what is read at once."""
    length = item.lengths[0]
    return ((start, min(AT_ONCE, length - start)) for start in range(0, length, AT_ONCE))


def _done(value: Any) -> Future[Any]:
    done: Future[Any] = Future()
    done.set_result(value)
    return done
