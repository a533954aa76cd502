"""A candidate compared with the present champion, on the same held-out prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.config import load
from components.files import read_json
from components.layout import Layout
from components.registry.base import Store
from components.registry.candidates import Candidate


def comparison_of(figures: Mapping[str, Any], candidate: str, champion: str) -> dict[str, Any]:
    """What `judge_candidate` takes, out of figures as `out/evaluation.json` has them.

    Args:
        figures: with ``gain_over_champion`` and ``champion``, as `components.evaluation.against_champion` gives them.
        candidate, champion: digests of the checkpoint that is judged, and of the one it was compared with.
    """
    gain, theirs = figures.get("gain_over_champion"), figures.get("champion")
    return {
        **(gain if isinstance(gain, dict) else {}),
        "unscorable_share": theirs.get("unscorable_share") if isinstance(theirs, dict) else None,
        "candidate": candidate,
        "champion": champion,
    }


def recorded_comparison(store: Store, candidate: Candidate, champion: str) -> dict[str, Any] | None:
    """What the run's own evaluation says about this champion; None where it was made with another one, or with none.

    Args:
        champion: digest of the present one.

    Raises:
        InputError: the evidence is gone or damaged, or cannot be read.
    """
    if candidate.evidence is None:
        return None
    layout = Layout(store.tree(candidate.evidence))
    named = load(layout.params).evaluation.champion
    figures = read_json(layout.evaluation) if layout.evaluation.is_file() else None
    if named is None or named.sha256 != champion or not isinstance(figures, dict) or "champion" not in figures:
        return None
    return comparison_of(figures, str(figures.get("checkpoint_sha256")), champion)
