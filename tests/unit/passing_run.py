"""A run that passes every check, as fixtures that a test imports."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from components.config.judgement import RuleSettings
from components.layout import Layout
from tests.proposals import write_run

FEW = {"entropy_low": RuleSettings(when="entropy < 0.5", level="warn", why="it is nearly certain of every token")}
"""Rules that are quickly read."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    return write_run(tmp_path_factory.mktemp("whole") / "run", rules=FEW)


@pytest.fixture
def layout(whole: Layout, tmp_path: Path) -> Layout:
    """A run of one's own."""
    return Layout(Path(shutil.copytree(whole.root, tmp_path / "run")))
