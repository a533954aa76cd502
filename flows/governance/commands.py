"""The commands that a person types to decide, as the project's policy asks for them."""

from __future__ import annotations

from dataclasses import dataclass

from components.config.promotion import Action, PromotionPolicy

SHORT = 12
"""Digits of a digest, as they are shown and typed."""


@dataclass(frozen=True)
class DecisionCommands:
    """``--key`` stands in them where only a signature counts."""

    policy: PromotionPolicy

    @staticmethod
    def read(digest: str) -> str:
        """The page to read first; it compares with the champion where that was not done yet."""
        return f"evenkeel show {digest[:SHORT]} --page report.html"

    def approve(self, digest: str, *, doubtful: bool = False) -> str:
        """``doubtful``: the gate is inconclusive, so that a reason is needed."""
        return self._line("promote", f"approve {digest[:SHORT]}", why=doubtful)

    def reject(self, digest: str) -> str:
        return self._line("reject", f"reject {digest[:SHORT]}", why=True)

    def rollback(self, to: str = "") -> str:
        """``to``: digest or number of a record; the champion before this one if empty."""
        return self._line("rollback", f"rollback --to {to[:SHORT]}" if to else "rollback", why=True)

    def adopt(self) -> str:
        return self._line("adopt", "adopt-policy", why=False)

    def _line(self, action: Action, command: str, *, why: bool) -> str:
        reason = " --reason WHY" if why else ""
        key = " --key YOUR-KEY" if self.policy.quorum(action).signed else ""
        return f"evenkeel {command} --by YOUR-NAME{reason}{key}"
