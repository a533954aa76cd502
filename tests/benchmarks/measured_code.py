"""Which code a figure is of: the commit, whether the files are those of the commit, and whether HEAD has the same."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.code_graph import ROOT

RUNNING = ("components", "flows", "configs", "tests", "dvc.yaml", "pyproject.toml", "constraints.txt")
"""What may run while a cell is measured. Result files and pages are not of it: they change with what is measured."""
COMPARED = ("components", "flows", "configs", "dvc.yaml", "tests/benchmarks")
"""What a figure of an earlier commit is compared over; tests say nothing of what was measured."""
PAGE = ".md"
NO_PAGES = f":(exclude)*{PAGE}"


@dataclass(frozen=True)
class Code:
    """``commit`` is a short id, with + where files differ from it, or "" without Git; ``digest`` is of the files
    themselves, so that two processes can tell whether they ran the same."""

    commit: str
    digest: str

    @classmethod
    def now(cls, root: Path = ROOT) -> Code:
        changed = _git(root, "status", "--porcelain", "--", *RUNNING, NO_PAGES)
        return cls(head(root) + ("+" if changed else ""), _digest(root))

    def until(self, later: Code) -> str:
        """The commit of what ran from this state to the later one; with + if files were changed in between."""
        dirty = self.commit.endswith("+") or later.digest != self.digest
        return self.commit.rstrip("+") + ("+" if dirty and self.commit else "")


def head(root: Path = ROOT) -> str:
    """Short id of the commit that is checked out; "" without Git."""
    return _git(root, "rev-parse", "--short=10", "HEAD")


def same_at_head(commit: str, root: Path = ROOT) -> bool:
    """Is what is measured at HEAD what it was at this commit? No for a commit that is not known, and with a +."""
    if not commit or commit.endswith("+"):
        return False
    command = ["git", "diff", "--quiet", commit, "HEAD", "--", *COMPARED, NO_PAGES]
    return subprocess.run(command, cwd=root, capture_output=True).returncode == 0


def _git(root: Path, *arguments: str) -> str:
    try:
        ended = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return ended.stdout.strip()


def _digest(root: Path) -> str:
    found = hashlib.sha256()
    for name in RUNNING:
        for path in sorted([root / name, *(root / name).rglob("*")]):
            if path.is_file() and path.suffix != PAGE and "__pycache__" not in path.parts:
                found.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
                found.update(path.read_bytes())
    return found.hexdigest()
