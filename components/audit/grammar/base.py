"""A class of probes: texts of one sort, with one verdict that all of them must get."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from components.audit.hacks import Target
from components.config.answers import AnswerKind

Must = Literal["refused", "accepted", "quick"]
"""What must become of a probe: ``quick`` is refused, and judged within `AuditSettings.quick_seconds`."""
PREFIX: dict[Must, str] = {"refused": "hack", "accepted": "form", "quick": "bomb"}
Kinds = tuple[AnswerKind, ...]
ANY: Kinds = get_args(AnswerKind)
Make = Callable[[Target], Iterable[str]]
"""Every text of a class for one question."""


@dataclass(frozen=True)
class ProbeClass:
    """``make`` gives every text of the class for one question; none where the class does not apply to it.

    Sound: a text that must be refused is wrong for that reference, whatever the verifier. So ``make`` reads the
    reference and leaves out what happens to equal it, and all of those whose form it does not know.
    """

    name: str
    must: Must
    kinds: Kinds
    """Kinds of answers (`AnswerKind`) that it is tried on."""
    make: Make
    advice: str
    """What to change in a verifier that judges it wrongly."""
    whole: bool = False
    """The texts are completions, not answers that the verifier has yet to state in its form."""
    source: str = ""
    """Where policies were seen to write it: the id of a paper, or an issue."""

    @property
    def title(self) -> str:
        """Its name in the audit's result."""
        return f"{PREFIX[self.must]}: {self.name}"

    def texts(self, target: Target) -> list[str]:
        """All of its completions for one question, each once."""
        made = self.make(target) if target.answers in self.kinds else ()
        return list(dict.fromkeys(made if self.whole else map(target.verifier.wrap, made)))


def refused(kinds: Kinds, name: str, make: Make, advice: str, source: str = "", whole: bool = False) -> ProbeClass:
    """A class of wrong answers."""
    return ProbeClass(name, "refused", kinds, make, advice, whole, source)


def table(text: str) -> list[str]:
    """The texts of a table, in which a new line or two spaces stand between them."""
    return re.split(r"\s*\n\s*|  +", text.strip())


def filled(patterns: str, answer: str, other: str = "") -> Iterator[str]:
    """The texts of a table with ``answer`` in the place of every ``@`` and ``other`` in that of every ``#``."""
    for pattern in table(patterns):
        yield re.sub("[@#]", lambda sign: answer if sign[0] == "@" else other, pattern)
