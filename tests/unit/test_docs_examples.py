"""The walk-through of docs/add-a-signal.md does what it says: applied to a copy of the code, its example passes its own
test.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.code_graph import ROOT

COPIED = ("components", "configs", "flows", "params.yaml", "pyproject.toml")
NEW_FILE = re.compile(r"^`(?P<path>[^`]+)`, a new file:\n\n```\w+\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
CHANGE = re.compile(r"^```diff\n\+\+\+ (?P<path>\S+)\n(?P<hunks>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path)
    return tmp_path


def follow(page: str, project: Path) -> list[str]:
    """Do what the page says; the paths that it names."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for file in NEW_FILE.finditer(text):
        path = project / file["path"]
        assert not path.exists(), f"{page} calls {file['path']} new"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file["body"], encoding="utf-8")
    for change in CHANGE.finditer(text):
        path = project / change["path"]
        path.write_text(changed(path.read_text(encoding="utf-8"), change["hunks"], change["path"]), encoding="utf-8")
    return [found["path"] for pattern in (NEW_FILE, CHANGE) for found in pattern.finditer(text)]


def changed(text: str, hunks: str, where: str) -> str:
    """The text with every hunk applied: lines with + join the lines around them, which must stand there once."""
    for hunk in filter(str.strip, hunks.split("@@\n")):
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line.startswith(" "))
        assert text.count(before) == 1, f"{where} does not hold these lines once:\n{before}"
        text = text.replace(before, "".join(line[1:] for line in lines))
    return text


def python(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def test_the_example_of_the_page_passes_its_own_test_and_the_linter(copy: Path) -> None:
    paths = follow("add-a-signal.md", copy)
    tests = [path for path in paths if path.startswith("tests/")]
    assert len(tests) == 1
    tried = python(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert tried.returncode == 0, tried.stdout
    files = [path for path in paths if path.endswith(".py")]
    for check in (["check"], ["format", "--check"]):
        linted = python(copy, "-m", "ruff", *check, "--no-cache", *files)
        assert linted.returncode == 0, linted.stdout


def test_the_rule_of_the_page_is_one_of_the_default_rules_and_has_advice(copy: Path) -> None:
    follow("add-a-signal.md", copy)
    shown = python(copy, "-c", "from components.health.rulebook import load_rules\n"
                   "from components.health.summaries.answers import advice\n"
                   "print(advice('answers_are_blank', load_rules()))")  # fmt: skip
    assert "read completions of that step" in shown.stdout, shown.stderr


def test_a_page_whose_surroundings_are_gone_is_found() -> None:
    with pytest.raises(AssertionError, match="does not hold these lines once"):
        changed("a\nb\n", "@@\n c\n+d\n", "a.py")
    assert changed("a\nb\n", "@@\n a\n+c\n b\n", "a.py") == "a\nc\nb\n"
