"""Which checkpoint to go back to: one that was healthy when it was made, and still looks so in hindsight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

TOLERANCE = 2.0
"""Standard errors by which dev pass@1 may lie below the best of all candidates."""
STORED_AS = {"healthy": "at_ease"}
"""Fields that have another name in the state of a checkpoint: runs that began with earlier versions can be resumed."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint of the run: made after ``step`` steps, with ``progress`` of them behind the policy.

    ``healthy``: no acting rule held then. ``dev`` and ``dev_se`` are its dev pass@1 and standard error: of the latest
    measurement when it was made, and of its own policy where that was measured afterwards; only then there are
    ``counts``, right answers of how many, by stream (`components.health.falls`).
    """

    step: int
    progress: int
    healthy: bool
    dev: float | None = None
    dev_se: float = 0.0
    counts: Mapping[str, Sequence[int]] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As checkpoints hold it; `from_dict` reads it."""
        return {STORED_AS.get(name, name): value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Saved:
        names = {key: name for name, key in STORED_AS.items()}
        return cls(**{names.get(key, key): value for key, value in stored.items()})


def healthiest(saved: Sequence[Saved], clean: int) -> Saved | None:
    """The newest checkpoint that was healthy when it was made, before the evidence began (after ``clean`` steps at the
    latest), and was not measurably worse on the dev split than the best of such. Where a run began counts as before
    everything.
    """
    candidates = [one for one in saved if one.step == 0 or (one.healthy and one.step <= clean)]
    measured = [one for one in candidates if one.dev is not None]
    if measured:
        best = max(measured, key=lambda one: one.dev or 0.0)
        floor = (best.dev or 0.0) - TOLERANCE * best.dev_se
        candidates = [one for one in measured if (one.dev or 0.0) >= floor]
    return max(candidates, key=lambda one: one.step, default=None)
