"""The result of a run's stages: a candidate, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """``candidate`` is the digest of the proposed checkpoint; None where ``reason`` explains why there is none."""

    run_id: str
    workspace: str
    candidate: str | None
    reason: str = ""
