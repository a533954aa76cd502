"""Verifiers and the sandbox that they share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from components.config.runners import CodeVerifier

if TYPE_CHECKING:
    from components.config.settings import Settings


def second_code(s: Settings) -> Iterator[str]:
    """The second verifier runs in the sandbox of the first."""
    if isinstance(s.audit.second, CodeVerifier):
        yield from s.audit.second.beyond(s.reward.sandbox, "audit.second")
