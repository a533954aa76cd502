"""Weights on their way to servers, in files."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import torch
from factories import policy, with_adapter

from components.errors import MachineError
from components.policy import stored
from components.rollout.servers.transfer import AdapterTransfer, FileTransfer

WEIGHTS = {name: torch.full((64,), float(number)) for number, name in enumerate("abcd")}


@pytest.mark.parametrize("again", [False, True], ids=["written", "kept from its own hand-over"])
def test_a_server_that_gets_older_weights_takes_no_newer_ones_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    monkeypatch.setattr(stored, "BUCKET", 256)
    own = FileTransfer(torch.float32, 1.0, tmp_path)
    if again:
        list(own.buckets(1, WEIGHTS))
    prepared, handed_over = own.buckets(1, WEIGHTS), own.buckets(2, WEIGHTS)
    first = next(handed_over)
    assert len(list(prepared)) == 4
    files = [first, *handed_over]
    assert len(files) == 4 and all(file.path.is_file() for file in files)
    assert [folder.name for folder in tmp_path.iterdir()] == ["weights-2"]
    assert [file.path for file in own.buckets(2, WEIGHTS)] == [file.path for file in files]
    own.close()
    assert not list(tmp_path.iterdir())


def test_a_disk_without_room_for_the_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, *_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(self))

    adapter = with_adapter(policy())
    files = FileTransfer(torch.float32, 1.0, tmp_path)
    alone = AdapterTransfer(torch.float32, 1.0, tmp_path, adapter.write_adapter)
    monkeypatch.setattr(Path, "mkdir", full)
    for write in (
        lambda: list(files.buckets(1, WEIGHTS)),
        lambda: list(alone.buckets(1, WEIGHTS)),
        lambda: adapter.write_adapter(adapter.trainable(), tmp_path / "adapter"),
    ):
        with pytest.raises(MachineError, match="cannot write: No space left on device"):
            write()
