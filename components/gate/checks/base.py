"""What a check is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from components.config import Settings
from components.gate.evidence import Evidence
from components.types import GateResult

Answer = tuple[GateResult, str]
"""The result and a sentence of evidence for it."""

AGAIN = "run the stage that writes it once more, and those after it: evenkeel run --resume RUN-ID"


@dataclass(frozen=True, slots=True)
class Check:
    """``judge`` answers from the evidence and the settings it is judged by; it may raise `InputError` where evidence is
    missing, which is a fail. ``how`` says what would change an answer that is not a pass, ``missing`` what would where
    the evidence is not there or cannot be read."""

    judge: Callable[[Evidence, Settings], Answer]
    how: str
    missing: str = AGAIN
