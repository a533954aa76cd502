"""A learner's state on disk: one shard a rank, read whole or refused."""

from __future__ import annotations

import json
import pickletools
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.distributed.checkpoint import HuggingFaceStorageReader

from components.config.base import AdamWSettings
from components.errors import InputError
from components.learner.optimizer import ClippedAdamW
from components.learner.state import Piece, StoredWeights, read_tensors
from components.learner.state.relay import write_file
from components.learner.state.shards import AT_ONCE, encoded, name_of, stored

WHOLE = {"weight/a": torch.arange(24.0).view(4, 6), "weight/b": torch.arange(5.0).bfloat16()}


def cut(folder: Path, parts: list[dict[str, tuple[int, int]]], whole: dict[str, Tensor] = WHOLE) -> Path:
    """A state of one shard for each of ``parts``: which elements of which tensor it has."""
    folder.mkdir()
    for rank, ranges in enumerate(parts):
        pieces = {n: Piece(whole[n].view(-1)[a:b], a, whole[n].shape) for n, (a, b) in ranges.items()}
        write_file(folder / name_of(rank, len(parts)), encoded(pieces))
    return folder


@pytest.fixture
def three(tmp_path) -> Path:
    """Through the middle of a row, and with a rank that has nothing."""
    return cut(tmp_path / "three", [{"weight/a": (0, 9)}, {}, {"weight/a": (9, 24), "weight/b": (0, 5)}])


def test_a_tensor_is_put_together_from_the_shards_of_all_ranks(three):
    found = read_tensors(three)
    assert found.keys() == WHOLE.keys()
    assert all(torch.equal(found[name], WHOLE[name]) and found[name].dtype == WHOLE[name].dtype for name in WHOLE)
    assert StoredWeights(three).keys() == {"a", "b"}


def test_a_shard_is_a_safetensors_file_that_dcps_own_reader_takes_too(three):
    part = load_file(three / name_of(2, 3))
    assert torch.equal(part["weight/a"], WHOLE["weight/a"].view(-1)[9:])
    found = HuggingFaceStorageReader(str(three)).read_metadata().state_dict_metadata
    assert {name: found[name].size.numel() for name in found} == {"weight/a": 24, "weight/b": 5}


def test_what_is_larger_than_one_part_is_written_as_safetensors_would(tmp_path):
    values = torch.randn(AT_ONCE + 3)
    write_file(tmp_path / "a", encoded({"x": Piece.of(values)}))
    assert torch.equal(load_file(tmp_path / "a")["x"], values)
    parts = list(encoded({"x": Piece.of(values)}))
    assert [len(part) for part in parts[1:]] == [4 * AT_ONCE, 12]


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def torn(name: str, size: int) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


def pickled(name: str) -> Callable[[Path], None]:
    return lambda folder: torch.save(WHOLE, folder / name)


def bare(name: str) -> Callable[[Path], None]:
    """A safetensors file of another program."""
    return lambda folder: save_file({"weight/a": torch.zeros(9)}, folder / name)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *((name_of(rank, 3), without(name_of(rank, 3))) for rank in range(3)),
        *((name_of(2, 3), torn(name_of(2, 3), size)) for size in (0, 4, 100, -1)),
        (name_of(1, 3), pickled(name_of(1, 3))),
        (name_of(0, 3), bare(name_of(0, 3))),
    ],
)
def test_a_shard_that_is_missing_or_torn_is_refused_and_named(three, name, damage):
    damage(three)
    with pytest.raises(InputError) as caught:
        read_tensors(three)
    assert name in str(caught.value)
    assert "the run goes on from the one before it" in str(caught.value)


@pytest.mark.parametrize(
    "parts",
    [
        [{"weight/a": (0, 9)}, {"weight/a": (10, 24)}],
        [{"weight/a": (0, 10)}, {"weight/a": (9, 24)}],
        [{"weight/a": (0, 23)}],
        [{"weight/a": (0, 24)}, {"weight/a": (0, 24)}],
    ],
)
def test_a_tensor_with_a_hole_or_with_elements_that_are_there_twice_is_refused(parts, tmp_path):
    with pytest.raises(InputError, match="'weight/a' are missing, or there twice"):
        read_tensors(cut(tmp_path / "state", parts))


def test_shards_of_two_states_are_refused(three, tmp_path):
    write_file(three / name_of(0, 1), encoded({"weight/a": Piece.of(WHOLE["weight/a"])}))
    with pytest.raises(InputError, match=r"of several states: of \[1, 3\]"):
        read_tensors(three)


def test_shards_with_other_shapes_are_refused(tmp_path):
    folder = cut(tmp_path / "state", [{"weight/a": (0, 9)}, {"weight/a": (9, 24)}])
    other = {"weight/a": Piece(WHOLE["weight/a"].view(-1)[9:], 9, torch.Size([6, 4]))}
    write_file(folder / name_of(1, 2), encoded(other))
    with pytest.raises(InputError, match="has the shape"):
        read_tensors(folder)


@pytest.mark.parametrize("value", [7, {"weight/a": "x"}, {"weight/a": [[4], 6]}, {}])
def test_a_shard_whose_metadata_is_nonsense_is_refused(value, three):
    path = three / name_of(0, 3)
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header: dict[str, Any] = json.loads(data[8 : 8 + length])
    header["__metadata__"]["shapes"] = json.dumps(value)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])
    with pytest.raises(InputError, match="not a whole shard"):
        read_tensors(three)


def test_the_one_file_of_an_earlier_version_is_refused_with_what_to_do(tmp_path):
    save_file({"weight/a": torch.zeros(3)}, tmp_path / "learner.safetensors")
    with pytest.raises(InputError, match="no state of this version") as caught:
        stored(tmp_path / "learner")
    assert "start the run from the beginning" in str(caught.value)


# An optimizer


def adamw(shape: tuple[int, ...] = (4, 6)) -> tuple[ClippedAdamW, dict[str, torch.nn.Parameter]]:
    parameters = {name: torch.nn.Parameter(torch.ones(shape)) for name in ("used", "unused")}
    return ClippedAdamW(parameters, AdamWSettings(lr=0.1)), parameters


def stepped(optimizer: ClippedAdamW, parameters: dict[str, torch.nn.Parameter], number: int) -> None:
    parameters["used"].grad = torch.full_like(parameters["used"], 1.0 + number)
    optimizer.step(0.1)


def test_a_parameter_that_was_never_updated_comes_back_without_moments(tmp_path):
    one, parameters = adamw()
    stepped(one, parameters, 0)
    one.state.save(tmp_path / "state")
    assert stored(tmp_path / "state").updates == {"used": 1.0}
    other, copies = adamw()
    for number in range(3):
        copies["unused"].grad = torch.ones_like(copies["unused"])
        stepped(other, copies, number)
    other.load(tmp_path / "state")
    assert other.steps == 1.0
    for optimizer, held in ((one, parameters), (other, copies)):
        held["unused"].grad = None
        stepped(optimizer, held, 1)
    assert all(torch.equal(parameters[name], copies[name]) for name in parameters)


def test_a_state_that_is_refused_has_changed_nothing(tmp_path):
    one, parameters = adamw()
    stepped(one, parameters, 0)
    one.state.save(tmp_path / "state")
    path = tmp_path / "state" / name_of(0, 1)
    path.write_bytes(path.read_bytes()[:-1])
    stepped(one, parameters, 1)
    before, steps = parameters["used"].detach().clone(), one.steps
    with pytest.raises(InputError, match=path.name):
        one.load(tmp_path / "state")
    assert torch.equal(parameters["used"], before) and one.steps == steps


def test_a_state_of_other_shapes_is_another_models(tmp_path):
    one, _ = adamw()
    one.state.save(tmp_path / "state")
    other, _ = adamw((6, 4))
    with pytest.raises(ValueError, match=r"another model: .*used is \[4, 6\] there and \[6, 4\] here"):
        other.load(tmp_path / "state")


def test_nothing_of_a_state_is_a_pickle(tmp_path):
    one, parameters = adamw()
    stepped(one, parameters, 0)
    one.state.save(tmp_path / "state")
    (path,) = (tmp_path / "state").iterdir()  # no .metadata either
    with pytest.raises(ValueError):
        list(pickletools.genops(path.read_bytes()))
