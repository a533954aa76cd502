"""The seam between a policy's text and a tool: when is it called, and what does it write?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple


class Segment(NamedTuple):
    """A stretch of text, and whether the policy writes it (or the tool)."""

    text: str
    sampled: bool


class Tool(ABC):
    """Answers calls that stand in the policy's own text. Pure: the same text gives the same observation."""

    ending: str
    """What every call ends with; a token that ends so may complete a call."""

    @abstractmethod
    def observe(self, text: str) -> str | None:
        """What the tool writes behind ``text``, all that policy and tool have written; None: it ends in no call.

        A call that makes no sense is answered too, by an observation that says so: the policy can learn from that.
        """

    @abstractmethod
    def segments(self, demonstration: str) -> list[Segment]:
        """A demonstration in stretches of policy and tool, which put together are the text.

        It is taken at its word: what stands where the tool would write is the tool's.
        """
