"""Who started the run of a candidate, by its record and by its evidence.

A record can be edited by whoever can write to the registry. The evidence lies under the digest that every approval
names, so what it says of who started the run cannot be changed once somebody has approved.
"""

from __future__ import annotations

from typing import Any

from components.errors import InputError
from components.files import read_json
from components.layout import Layout
from components.registry.base import Store
from components.registry.candidates import STARTERS, Candidate


def started_by(store: Store, candidate: Candidate | None) -> tuple[str, ...] | None:
    """The names of all who started or proposed it; None where one of them is not known.

    The record has everybody, also those who proposed the same checkpoint before on other evidence, and those who
    repeated the finished run since. Evidence from before names were kept in it leaves it to the record; what cannot be
    read of it is for the gate to refuse.

    Raises:
        InputError: the record leaves out a name that the evidence has.
    """
    if candidate is None:
        return None
    recorded, written = _names(candidate.run.get(STARTERS)), in_evidence(store, candidate)
    if recorded and written is not None and not (written and set(written) <= set(recorded)):
        says = ", ".join(written) or "that it is not known"
        what = f"started by {', '.join(recorded)}, says the candidate's record, and its evidence says {says}"
        how = "one of the two was changed: find out how, and restore the registry"
        raise InputError(what, where=candidate.key, how=how)
    return recorded or None


def in_evidence(store: Store, candidate: Candidate) -> tuple[str, ...] | None:
    """What `lineage.json` says, which no write to the registry changes; None where it says nothing."""
    if candidate.evidence is None:
        return None
    try:
        lineage = read_json(Layout(store.tree(candidate.evidence)).lineage)
    except InputError:
        return None
    return _names(lineage[STARTERS]) if isinstance(lineage, dict) and STARTERS in lineage else None


def _names(said: Any) -> tuple[str, ...]:
    names = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    return tuple(name for name in names if isinstance(name, str) and name.strip())
