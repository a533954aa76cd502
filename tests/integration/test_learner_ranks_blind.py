"""Ranks on a node that does not see the folder of rank 0: their part of a state travels through the process group."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from components.learner.base import Learner

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from tests.integration.ranks import KINDS, content, how, learning, saved, steps
from tests.tiers import slow_but

pytestmark = pytest.mark.integration
HERE = Path("here")
"""What rank 0 names is relative to its working folder, and rank 1 has another."""


@dataclass
class Blind:
    """A learner of two ranks of which rank 1 sees nothing of rank 0's; folders are relative to rank 0's ``home``."""

    learner: Learner
    home: Path
    elsewhere: Path


@pytest.fixture(scope="module", params=slow_but(KINDS, "fsdp2"))
def blind(request, tmp_path_factory) -> Iterator[Blind]:
    home, elsewhere = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("elsewhere")
    with learning(how(**KINDS[request.param]), tmp_path_factory.mktemp("logs"), cwd=elsewhere) as learner:
        steps(learner, [0, 1])
        yield Blind(learner, home, elsewhere)


@pytest.fixture
def at_home(blind, monkeypatch) -> Blind:
    monkeypatch.chdir(blind.home)
    return blind


@pytest.mark.slow
def test_rank_0_writes_what_the_others_send_as_they_would_have_written_it(at_home, tmp_path):
    seen, sent = saved(at_home.learner, tmp_path / "seen"), saved(at_home.learner, Path("sent"))
    assert len(content(sent)) == 3
    assert content(sent) == content(seen)
    assert not list(at_home.elsewhere.iterdir())


def test_a_rank_gets_its_part_back_and_goes_on_to_the_bit(at_home):
    folder = saved(at_home.learner, Path("back"))
    expected = steps(at_home.learner, [2, 3])
    at_home.learner.load(folder)
    assert steps(at_home.learner, [2, 3]) == expected


def test_a_copy_is_sent_next_to_the_work_of_the_ranks(at_home):
    Path("later").mkdir()
    expected = content(saved(at_home.learner, Path("now")))
    written = at_home.learner.snapshot(Path("later"))
    steps(at_home.learner, [2])
    written()
    assert content(Path("later")) == expected


def test_what_is_sent_and_cannot_be_written_is_an_error_of_rank_0_and_the_ranks_go_on(at_home):
    name = "shard-00002-of-00002.safetensors"
    for folder in ("full", "full-later"):
        (Path(folder) / "learner" / name).mkdir(parents=True)
    with pytest.raises(IsADirectoryError, match=name):
        at_home.learner.save(Path("full"))
    written = at_home.learner.snapshot(Path("full-later"))
    with pytest.raises(IsADirectoryError, match=name):
        written()
    assert steps(at_home.learner, [2])
