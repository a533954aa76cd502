"""Ranks that see none of the run's folders: the same state, the same bytes, and no half of a checkpoint."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from components.files import manifest
from components.learner import build_learner
from components.learner.remote import folders

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from factories import policy

from tests.integration.ranks import KINDS, how, saved, steps

pytestmark = pytest.mark.integration
APART = {"shared_folder": False}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["zero-2", "zero-3", "fsdp2"])
def test_what_is_saved_and_loaded_is_that_of_ranks_that_see_the_folders(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "PIECE", 1000)
    found = []
    for name, apart in (("shared", {}), ("apart", APART)):
        learner = build_learner(policy(), how(**KINDS[kind], ranks_=apart), tmp_path / name / "logs")
        before = steps(learner, [0, 1])
        folder = saved(learner, tmp_path / name / "state")
        after = steps(learner, [2])
        learner.load(folder)
        again = steps(learner, [2])
        learner.save_policy(tmp_path / name / "policy")
        learner.close()
        assert again == after
        found.append((before, after, manifest(folder), manifest(tmp_path / name / "policy")))
    assert found[0] == found[1]
