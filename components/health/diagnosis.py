"""Which part of a run is to blame for what a rule says of its policy: from experiments to one part, with the evidence.

The experiments are made by `components.training.experiments`; this decides. What was exactly found comes first, then
what the policy is measured by, then what it is trained by. The policy is to blame where nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from components.config.judgement import Part

AGAIN = 5.0
"""Nats of evidence that a checkpoint is answered for worse than when it was saved, above which the world has changed.
Of four families and all prompts together one healthy measurement in thirty is above by chance."""
REVERSED = 4.6
"""Nats of evidence that updates do not do what they are made for; with the alarm for the policy it is enough."""
SUDDEN = 6.0
"""How many times as far as usual an update moves the policy, at an unchanged rate, for the rate not to be the cause."""
MISJUDGED = 7.0
"""Nats of evidence that the answers to the training prompts of a family are judged worse than to held-out ones."""


@dataclass(frozen=True)
class Experiments:
    """What was tried.

    ``broken`` are the invariants of the last steps that did not hold and were not repaired, as (part, text).
    ``golden`` is how many golden items are judged otherwise than at first, of how many. ``mismatch`` is the gap between
    sampler and learner on completions that were sampled for it, by server, and ``mismatch_limit`` what is usual at
    most. ``again`` is the evidence, nats, that the last healthy checkpoint answers worse than when it was saved (None:
    not measured). ``reversal`` is that against the updates, ``sudden`` how many times as far as the updates before it
    the latest one moved the policy, ``family`` the family that learns otherwise with its evidence.
    """

    broken: Sequence[tuple[Part, str]] = ()
    golden: tuple[int, int] = (0, 0)
    mismatch: Mapping[int, float] = field(default_factory=dict)
    mismatch_limit: float = 0.0
    again: float | None = None
    reversal: float = 0.0
    sudden: float = 0.0
    family: tuple[str, float] = ("", 0.0)


@dataclass(frozen=True)
class Diagnosis:
    """The part that is to blame, and why; ``server`` is the one that is suspected, -1 where none is."""

    part: Part
    evidence: tuple[str, ...]
    server: int = -1


def diagnose(tried: Experiments) -> Diagnosis:
    """The part that the experiments point at."""
    if tried.broken:
        part, text = tried.broken[-1]
        return Diagnosis(part, (text,))
    differ, of = tried.golden
    if differ:
        return Diagnosis("verifier", (f"{differ} of {of} answers are judged otherwise than when they were new",))
    if tried.mismatch and (worst := max(tried.mismatch.values())) > tried.mismatch_limit:
        server = max(tried.mismatch, key=lambda one: tried.mismatch[one])
        where = f" (server {server})" if server >= 0 else ""
        usual = f"at most {tried.mismatch_limit:.3g} is usual"
        text = f"sampler{where} and learner differ by {worst:.3g} nats a token; {usual}"
        return Diagnosis("sampler", (text,), server)
    part, text = next(_suspects(tried))
    if tried.again is None:
        return Diagnosis(part, (text,))
    how = f"worse ({tried.again:.1f} nats)" if tried.again > AGAIN else "as well as then"
    return Diagnosis(part, (f"the last healthy checkpoint, measured again, answers {how}", text))


def _suspects(tried: Experiments) -> Iterator[tuple[Part, str]]:
    """What measurements point at, with the reason; the policy comes last."""
    if tried.again is not None and tried.again > AGAIN:
        yield "sampler", "answers are judged as before, so what is sampled has changed"
    if tried.reversal > REVERSED:
        yield "learner", f"updates lower what had positive advantages ({tried.reversal:.1f} nats)"
    if tried.sudden > SUDDEN:
        how = f"{tried.sudden:.0f} times as far as those before it, at the same rate"
        yield "learner", f"one update moved the policy {how}"
    family, nats = tried.family
    if nats > MISJUDGED:
        yield "data", f"training answers of {family} are judged far worse than held-out ones were ({nats:.1f} nats)"
    yield "policy", "data, schedule, verifier, sampler, learner and settings are as they should be"
