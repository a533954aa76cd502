"""A state of three ranks goes on with two of which one does not see the folder of rank 0.

A process is a rank of one group at a time, so no learner is kept from one test to the next here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from components.learner.state import read_tensors
from tests.integration.ranks import KINDS, difference, how, learning, near, saved, steps

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_of_three_ranks_reaches_two_that_do_not_see_it(kind, tmp_path, monkeypatch):
    home, elsewhere, folder = tmp_path / "home", tmp_path / "elsewhere", Path("three")
    home.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(home)
    with learning(how(ranks=3, **KINDS["zero-3"]), tmp_path / "logs-3") as three:
        steps(three, [0, 1])
        saved(three, folder)
        expected = steps(three, [2, 3])
    with learning(how(**KINDS[kind]), tmp_path / "logs-2", cwd=elsewhere) as two:
        two.load(folder)
        again = saved(two, Path("again"))
        assert difference(read_tensors(again / "learner"), read_tensors(folder / "learner")) == 0
        assert near(steps(two, [2, 3]), expected)
