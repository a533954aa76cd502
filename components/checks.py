"""One thing that `evenkeel doctor` looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; ``fix`` states what to do unless it is ok."""

    name: str
    state: State
    finding: str
    fix: str = ""
