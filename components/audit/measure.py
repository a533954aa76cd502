"""How the probes were judged."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from components.audit.probes import Probe
from components.evaluation.statistics import Proportion, wilson
from components.rewards.sandbox import Sandbox
from components.types import Score

ACCEPTED_FROM = 0.5
"""Raw accuracy from which an answer counts as accepted."""
RETRIED = 10
"""Bombs that are judged once more. More of them than that are no accident of a busy machine."""
REPEATED = 200
"""Probes that are judged again, spread over all kinds."""
TIMED = 100
EXAMPLES = 3
EXAMPLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Kind:
    """The probes of one sort.

    ``wrong`` is the share judged wrongly: refused right answers, accepted wrong ones, and, where they must be judged
    quickly (``quick``), those that were not judged in time.
    """

    name: str
    right: bool
    wrong: Proportion
    unscorable: int
    disagree: int | None
    """Where a second verifier judged too: probes on which the two say different things."""
    examples: tuple[dict[str, str], ...]
    advice: str = ""
    quick: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.name,
            "must_be": "accepted" if self.right else "refused",
            "probes": self.wrong.n,
            "judged_wrongly": self.wrong.count,
            "low": self.wrong.low,
            "high": self.wrong.high,
            "unscorable": self.unscorable,
            "disagree": self.disagree,
            "examples": list(self.examples),
            "advice": self.advice,
        }


@dataclass(frozen=True, slots=True)
class Audit:
    """Everything that was measured, in the order in which the kinds first appear."""

    prompts: int
    kinds: tuple[Kind, ...]
    repeated: int
    unstable: int
    """Probes that were not judged the same every time."""
    unscorable: dict[str, int]
    """Reason code -> probes."""
    false_positive: Proportion
    """Prompts of which at least one wrong answer was accepted. The probes of a prompt are much the same to a verifier,
    so that each would not count as an observation of its own."""
    false_negative: Proportion
    """Prompts of which at least one right answer was refused."""


Open = Callable[[], AbstractContextManager[Sandbox]]
"""Starts new worker processes."""
NOT_JUDGED = ("timeout", "memory", "crash")
"""Codes of reasons that cost a worker process: what a bomb must not achieve."""


def measure(
    probes: Sequence[Probe],
    open_sandbox: Open,
    repeats: int,
    second: Sandbox | None = None,
    open_quick: Open | None = None,
) -> Audit:
    """Judge every probe once, some of them again, and all of them with the second verifier where there is one.

    Again means in new workers and in another order: a verdict that depends on what a worker judged before shows.
    Probes that must be judged quickly are judged once, by workers of ``open_quick``, whose limit of time is the
    audit's, and a few that fail a second time, since a machine may be busy; without ``open_quick`` they are left out.
    """
    bombs = [probe for probe in probes if probe.quick] if open_quick is not None else []
    probes = [probe for probe in probes if not probe.quick]
    items = [(probe.prompt, probe.text) for probe in probes]
    with open_sandbox() as sandbox:
        scores = sandbox.judge(items)
    others = second.judge(items) if second is not None else None
    chosen = np.linspace(0, len(items) - 1, min(REPEATED, len(items))).astype(int).tolist()
    unstable: set[int] = set()
    for _ in range(repeats - 1):
        chosen.reverse()
        with open_sandbox() as sandbox:
            again = sandbox.judge([items[i] for i in chosen])
        unstable |= {i for i, score in zip(chosen, again, strict=True) if score != scores[i]}
    if open_quick is not None and bombs:
        probes, scores = [*probes, *bombs], [*scores, *_quickly(bombs, open_quick)]
    places: dict[str, list[int]] = {}
    for i, probe in enumerate(probes):
        places.setdefault(probe.kind, []).append(i)
    return Audit(
        prompts=len({probe.prompt.id for probe in probes}),
        kinds=tuple(_kind(name, mine, probes, scores, others) for name, mine in places.items()),
        repeated=len(chosen),
        unstable=len(unstable),
        unscorable=dict(sorted(Counter(code(score.unscorable) for score in scores if score.unscorable).items())),
        false_positive=_prompts(probes, scores, right=False),
        false_negative=_prompts(probes, scores, right=True),
    )


def _quickly(bombs: Sequence[Probe], open_quick: Open) -> list[Score]:
    items = [(probe.prompt, probe.text) for probe in bombs]
    with open_quick() as sandbox:
        scores = sandbox.judge(items)
    failed = [i for i, score in enumerate(scores) if code(score.unscorable or "") in NOT_JUDGED]
    if 0 < len(failed) <= RETRIED:
        with open_quick() as sandbox:
            for i, score in zip(failed, sandbox.judge([items[i] for i in failed]), strict=True):
                scores[i] = score
    return scores


def misjudged(probe: Probe, score: Score) -> bool:
    """Whether the verdict is not the one that the probe must get."""
    late = probe.quick and code(score.unscorable or "") in NOT_JUDGED
    return late or accepted(score) != probe.right


def _prompts(probes: Sequence[Probe], scores: Sequence[Score], right: bool) -> Proportion:
    """Share of the prompts of which at least one right, or wrong, answer was judged wrongly."""
    judged = [(p.prompt.id, accepted(s) != right) for p, s in zip(probes, scores, strict=True) if p.right == right]
    return wilson(len({prompt for prompt, wrong in judged if wrong}), len({prompt for prompt, _ in judged}))


def _kind(
    name: str, mine: Sequence[int], probes: Sequence[Probe], scores: Sequence[Score], others: Sequence[Score] | None
) -> Kind:
    """The kind of this name, whose probes are those at the places ``mine``."""
    right = probes[mine[0]].right
    wrong = [i for i in mine if misjudged(probes[i], scores[i])]
    compared = others is not None and not probes[mine[0]].quick
    disagree = sum(accepted(scores[i]) != accepted(others[i]) for i in mine) if others and compared else None
    return Kind(
        name=name,
        right=right,
        wrong=wilson(len(wrong), len(mine)),
        unscorable=sum(scores[i].unscorable is not None for i in mine),
        disagree=disagree,
        examples=tuple(_example(probes[i], scores[i]) for i in wrong[:EXAMPLES]),
        advice=probes[mine[0]].advice,
        quick=probes[mine[0]].quick,
    )


def _example(probe: Probe, score: Score) -> dict[str, str]:
    said = f"accuracy {score.accuracy:g}" if score.accuracy is not None else str(score.unscorable)
    shown = {"question": probe.prompt.text, "answer": probe.prompt.answer, "text": probe.text, "verdict": said}
    return {name: text[:EXAMPLE_CHARS] for name, text in shown.items()} | {"id": probe.prompt.id}


def accepted(score: Score) -> bool:
    """Whether the verifier takes the answer for right. What it could not judge is not accepted."""
    return score.accuracy is not None and score.accuracy >= ACCEPTED_FROM


def code(reason: str) -> str:
    """The first word of a reason for being unscorable: ``timeout``, ``memory``, ``crash``, ``error``."""
    return reason.partition(":")[0]


def timing(probes: Sequence[Probe], sandbox: Sandbox) -> dict[str, float]:
    """Seconds per answer when each is judged alone (median and slowest), and answers a second in one batch.

    Not part of `Audit`: times differ from run to run.
    """
    chosen = [probes[i] for i in np.linspace(0, len(probes) - 1, min(TIMED, len(probes))).astype(int)]
    items = [(probe.prompt, probe.text) for probe in chosen]
    sandbox.judge(items)  # every worker has started
    alone = []
    for item in items:
        began = time.perf_counter()
        sandbox.judge([item])
        alone.append(time.perf_counter() - began)
    began = time.perf_counter()
    sandbox.judge(items)
    batch = time.perf_counter() - began
    return {"median": float(np.median(alone)), "slowest": max(alone), "per_second": len(items) / batch}
