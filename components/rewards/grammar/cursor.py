"""A cursor over the tokens of one answer."""

from __future__ import annotations

from collections.abc import Sequence

from components.rewards.grammar.nodes import MAX_DEPTH, NotRead
from components.rewards.grammar.tokens import Token


class Cursor:
    """Moves over tokens, and counts how deep what it reads is nested."""

    def __init__(self, tokens: Sequence[Token], algebra: bool) -> None:
        self._tokens, self._at, self._depth = [*tokens], 0, 0
        self._algebra = algebra
        self.money = ""
        """The sign of a currency that stands before a number."""

    @property
    def here(self) -> Token:
        """The token that is read next."""
        return self._tokens[self._at]

    def next(self, kind: str, *texts: str) -> bool:
        """Whether the next token is of this kind, and one of ``texts`` where there are any."""
        return self.here.kind == kind and (not texts or self.here.text in texts)

    def take(self) -> Token:
        """The next token; the cursor moves on."""
        token = self.here
        self._at += token.kind != "end"
        return token

    def skip(self, kind: str, *texts: str) -> bool:
        """Move past such a token, where there is one."""
        found = self.next(kind, *texts)
        self._at += found
        return found

    def expect(self, kind: str, *texts: str) -> None:
        """Move past such a token, or NotRead."""
        if not self.skip(kind, *texts):
            raise NotRead(f"{self.here.text!r} stands where {texts or kind} belongs")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NotRead("it is nested deeper than anybody writes")
