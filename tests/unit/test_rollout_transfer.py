"""Weights on their way to servers, in files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from components.policy import stored
from components.rollout.servers.transfer import FileTransfer

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
