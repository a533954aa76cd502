"""The pages that belong to a candidate's evidence, where a browser finds them.

They are those that were judged, from the registry, and not those in the run's workspace, which may have changed since.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from components.directories import write_directory
from components.files import write_text
from components.layout import Layout
from components.registry import Store
from flows.serving.pages import EVIDENCE, TYPES, addresses


def pages(project: Path, store: Store, evidence: str | None, report: str | None = None) -> dict[str, str]:
    """Title -> address of each; none for a candidate without evidence.

    They are copied every time, so that a person reads what is stored.

    Args:
        report: a page that knows what is known since the run, in place of the run's own.

    Raises:
        InputError: the stored evidence is not what it was.
    """
    if evidence is None:
        return {}
    folder = project / EVIDENCE / evidence
    source = store.tree(evidence)
    write_directory(folder, lambda staging: _fill(source, staging, report))
    return addresses(Layout(folder), f"evidence/{evidence}")


def _fill(source: Path, target: Path, report: str | None) -> None:
    _copy(source, target)
    if report is not None:
        write_text(Layout(target).report, report)


def _copy(source: Path, target: Path) -> None:
    """What pages consist of, and nothing else."""
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.suffix in TYPES:
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
