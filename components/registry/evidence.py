"""Storing evidence so that a finished run that somebody repeats has that of before.

Nothing in it differs then but who started the run. With evidence of its own it would be undecided again, and approvals
that were given would not count any more, because somebody typed a command.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import manifest, read_json
from components.layout import Layout
from components.registry.base import Store

STARTERS = "started_by"
"""In `lineage.json` and in the record of a candidate: the names of who started the run."""


def store_evidence(store: Store, folder: Path, earlier: str | None) -> str:
    """Digest under which the evidence in ``folder`` is stored: ``earlier`` where at most who started the run differs.

    Raises:
        InputError: it cannot be stored, or what is stored as ``earlier`` is something else by now.
    """
    if earlier is not None and store.has_tree(earlier) and _of_a_run(folder) == _of_a_run(store.tree(earlier)):
        return earlier
    return store.put_tree(folder)


def _of_a_run(evidence: Path) -> dict[str, Any]:
    """The manifest; in place of the digest of `lineage.json` what that says, but for who started the run."""
    found: dict[str, Any] = dict(manifest(evidence))
    path = Layout(evidence).lineage
    try:
        lineage = read_json(path)
    except InputError:  # as good as any other file; the gate refuses it
        return found
    return {**found, path.name: {**lineage, STARTERS: None}} if isinstance(lineage, dict) else found
