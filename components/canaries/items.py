"""A probe, and what one answer to it is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from components.config.canaries import By

Judged = Literal["verifier", "choice", "pattern", "refusal", "alike", "sentences"]
"""How a probe is judged: by the run's verifier, the option chosen, a pattern, whether it refuses, whether two questions
are answered alike, which of two sentences is the likelier."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One frozen question.

    ``texts`` are the prompts: one, or two that must be answered alike. ``choices`` are continuations
    whose log-probabilities are compared, ``right`` the place of the right one; ``whole`` says that each is a complete
    answer, its end included. ``named`` are the texts of options that letters stand for.

    A drop is judged within each ``stratum``, so that a rise in one hides no fall in another; ``group`` is only
    reported. ``biased`` and ``unknown`` are the places of the stereotyped option and of "not known" (BBQ).
    """

    id: str
    texts: tuple[str, ...]
    judged: Judged
    choices: tuple[str, ...] = ()
    right: int = 0
    whole: bool = False
    named: tuple[str, ...] = ()
    answer: str = ""
    pattern: str = ""
    should_refuse: bool = False
    stratum: str = ""
    group: str = ""
    biased: int | None = None
    unknown: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One probe, judged.

    ``score`` in [0, 1] is what a drop is measured on: by generation right or wrong, by likelihood the probability of
    the right one among the choices. None: it could not be judged. ``right`` is whether the right one comes first,
    ``right_normalised`` the same per token, ``margin`` the nats by which it leads the best other one (negative: by
    which it trails), ``chosen`` the place of the choice that was taken.
    """

    score: float | None
    right: bool | None = None
    right_normalised: bool | None = None
    margin: float | None = None
    chosen: int | None = None


@dataclass(frozen=True, slots=True)
class ProbeSet:
    """The probes of one set in their order, which never changes, and the digest of what they were made of."""

    name: str
    probes: tuple[Probe, ...]
    sha256: str


@dataclass(frozen=True, slots=True)
class Measured:
    """One set, measured in one way: an outcome for each probe, in the set's order."""

    set: ProbeSet
    by: By
    outcomes: tuple[Outcome, ...]
