"""Folders over a connection: the same bytes, or an error; never more than a piece in memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
import torch
from torch import Tensor

from components.errors import InputError, PeerLost
from components.files import manifest
from components.learner.ranks import Ranks
from components.learner.remote import folders
from components.learner.remote.folders import Arrivals, Arriving, Sent, node_of, pieces, shared_with
from components.learner.remote.wire import Message, decode, encode


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of some pieces, one of them empty."""
    monkeypatch.setattr(folders, "PIECE", 10)
    folder = tmp_path / "sent"
    (folder / "sub").mkdir(parents=True)
    for name, size in (("empty", 0), ("exact", 20), ("odd", 25), ("sub/one", 1)):
        (folder / name).write_bytes(bytes(i % 251 for i in range(size)))
    return folder


def travelled(one: Sent, **more: object) -> Message:
    return decode(encode({**one.header, **more}, one.tensors))


def test_a_folder_arrives_as_it_was_sent(sent, tmp_path):
    arriving = Arriving(tmp_path / "arrived")
    for one in pieces(sent):
        assert not arriving.whole
        arriving.take(travelled(one))
    assert arriving.whole
    assert manifest(tmp_path / "arrived") == manifest(sent)


def test_some_files_of_it_may_be_enough(sent, tmp_path):
    arriving = Arriving(tmp_path / "arrived")
    for one in pieces(sent, ["odd"]):
        arriving.take(travelled(one))
    assert list(manifest(tmp_path / "arrived")) == ["odd"]


def spoilt(one: Sent) -> Sent:
    """The same, but for a bit of a piece of five bytes."""
    return Sent(one.header, {name: data ^ 1 if len(data) == 5 else data for name, data in one.tensors.items()})


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda all_: [one for one in all_ if one.header.get("at") != 10], "goes on at byte 20, and 10 have come"),
        (lambda all_: [one for one in all_ if one.header.get("file") != "sub/one"], "not as they were sent: sub/one"),
        (lambda all_: [*all_[:3], *all_[2:]], "goes on at byte"),
        (lambda all_: [spoilt(one) for one in all_], "not as they were sent: odd"),
    ],
)
def test_what_is_missing_twice_or_changed_is_noticed(sent, tmp_path, spoil, why):
    arriving = Arriving(tmp_path / "arrived")
    with pytest.raises(PeerLost, match=why):
        for one in spoil(list(pieces(sent))):
            arriving.take(travelled(one))
    assert not arriving.whole


@pytest.mark.parametrize("name", ["../x", "/x", "a/../x"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="leads elsewhere"):
        Arriving(tmp_path / "arrived").take(
            Message({"file": name, "at": 0}, {"data": torch.zeros(1, dtype=torch.uint8)})
        )
    assert not (tmp_path / "x").exists()


def test_no_more_than_some_pieces_are_held_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "PIECE", 1 << 16)
    (tmp_path / "sent").mkdir()
    (tmp_path / "sent" / "large").write_bytes(bytes(1 << 23))
    arriving = Arriving(tmp_path / "arrived")
    tracemalloc.start()
    for one in pieces(tmp_path / "sent"):
        arriving.take(travelled(one))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert arriving.whole
    assert peak < 16 * (1 << 16)


def test_a_folder_that_comes_again_takes_the_place_of_the_one_before(sent, tmp_path):
    arrivals = Arrivals(Ranks())
    for names in (None, ["odd"]):
        for one in pieces(sent, names):
            arrivals.take(travelled(one, name="state"))
    found = arrivals.folder("state")
    assert list(manifest(found)) == ["odd"]
    arrivals.close()
    assert not found.exists()


class Two(Ranks):
    """One rank of several, and what the others would give to a sum."""

    def __init__(self, rank: int, others: dict[int, tuple[int, Path]]) -> None:
        object.__setattr__(self, "rank", rank)
        object.__setattr__(self, "size", len(others) + 1)
        self.__dict__["others"] = others

    def total(self, values: Tensor) -> Tensor:
        for rank, (node, folder) in self.__dict__["others"].items():
            data = str(folder).encode()
            values[rank, 0], values[rank, 1] = node, len(data)
            values[rank, 2 : 2 + len(data)] = torch.tensor(list(data))
        return values


def test_the_first_rank_of_a_machine_writes_for_all_of_them(tmp_path):
    a, b, c = (tmp_path / name for name in "abc")
    assert shared_with(Two(0, {1: (0, b), 2: (1, c)}), 0, a) == (True, a)
    assert shared_with(Two(1, {0: (0, a), 2: (1, c)}), 0, b) == (False, a)
    assert shared_with(Two(2, {0: (0, a), 1: (0, b)}), 1, c) == (True, c)


def test_a_machine_is_known_by_what_torchrun_says_of_it():
    assert node_of({"GROUP_RANK": "3"}, rank=7) == 3
    assert node_of({}, rank=7) == 7
