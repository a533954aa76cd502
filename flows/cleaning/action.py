"""One action of the janitor, or one that it skipped."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Kind = Literal["process", "folder", "weights", "flow run", "workspace", "server", "candidate", "jobset", "cluster"]


@dataclass(frozen=True, slots=True)
class CleanupAction:
    """``what`` was found, ``done`` with it, and ``why``."""

    kind: Kind
    what: str
    done: str
    why: str

    def to_dict(self) -> dict[str, str]:
        return asdict(self)
