"""A rule as a sentence and as an expression.

The expression can be written from memory: a forgetful writer leaves out conditions and units, and gets everything else
right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from components.tasks.turns import Forget

Verb = Literal["require", "forbid"]

AUXILIARY: dict[Verb, str] = {"require": "must", "forbid": "must not"}


@dataclass(frozen=True, slots=True)
class Phrase:
    """Some words and what they mean: a call with its parameters, and the unit of its number where it has one."""

    words: str
    name: str
    parameters: tuple[str, ...] = ()
    unit: str = ""

    def call(self, forget: Forget) -> str:
        """``width(min=1.2, unit=m)``, or without its unit."""
        unit = (f"unit={self.unit}",) if self.unit and not forget() else ()
        return f"{self.name}({', '.join((*self.parameters, *unit))})"


@dataclass(frozen=True, slots=True)
class Rule:
    """What is required or forbidden of a subject, and under which conditions."""

    opening: str
    subject: str
    conditions: Sequence[Phrase]
    verb: Verb
    requirements: Sequence[Phrase]

    @property
    def sentence(self) -> str:
        """The rule as a sentence."""
        subject = " ".join((self.opening, self.subject, *(phrase.words for phrase in self.conditions)))
        auxiliary = AUXILIARY[self.verb]
        return f"{subject} {auxiliary} {f' and {auxiliary} '.join(phrase.words for phrase in self.requirements)}."

    def expression(self, forget: Forget) -> str:
        """The rule as a skeleton, as the writer remembers it; a memory is called at every condition and unit."""
        conditions = [phrase.call(forget) for phrase in self.conditions if not forget()]
        condition = f"if {' and '.join(conditions)} " if conditions else ""
        requirements = " and ".join(phrase.call(forget) for phrase in self.requirements)
        return f"class {self.subject.title().replace(' ', '')} {{ {condition}{self.verb} {requirements} }}"
