"""What functions from outside pay for wrong answers, next to what they pay for the right one of the same prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from components.audit.probes import Probe
from components.config.reward import RewardSettings
from components.rewards.sandbox import Sandbox
from components.types import Completion, Prompt

NOTHING = ("hack: empty", "hack: white space", "hack: prompt echo", "hack: huge junk")
"""Kinds of probes that no part should prefer to the right answer, whatever it is about."""
TOGETHER = "all together"
Call = tuple[str, Prompt, tuple[Completion, Completion]]
Paid = tuple[float, float]
"""What was paid for the right answer and for the wrong one; (0, 0) where a function does not apply to one of them."""


@dataclass(frozen=True, slots=True)
class Payment:
    """What one function pays for the wrong answers of one sort, each judged next to the right one."""

    function: str
    kind: str
    pairs: int
    outbids: int
    """Pairs of which it pays so much more for the wrong answer that the accuracy does not make up for it."""
    prefers: int
    """Pairs of which it pays more for the wrong answer, where that says nothing (`NOTHING`)."""
    failed: int
    unstable: int
    """Pairs for which a second call in another process returned something else."""
    worst: Paid
    """The pair of which it pays most for the wrong answer, measured from the right one."""
    reason: str
    """Why a call failed."""

    @property
    def where(self) -> str:
        """The setting that a message is about."""
        return "reward.functions" if self.function == TOGETHER else f"reward.functions.{self.function}"


def measure_functions(
    probes: Sequence[Probe], settings: RewardSettings, open_sandbox: Callable[[], AbstractContextManager[Sandbox]]
) -> list[Payment]:
    """One payment per function and sort of wrong answer, and per sort of all functions where there are several.

    Every call has the reference solution and one wrong answer; it is repeated in new processes, in another order.
    """
    right = {probe.prompt.id: probe.text for probe in reversed(probes) if probe.right}
    wrong = [probe for probe in probes if not probe.right and not probe.quick]
    names = list(settings.functions)
    pairs = [(probe.prompt, (_written(right[probe.prompt.id]), _written(probe.text))) for probe in wrong]
    calls: list[Call] = [(name, *pair) for name in names for pair in pairs]
    if not calls:
        return []
    with open_sandbox() as sandbox:
        first = sandbox.values(calls)
    with open_sandbox() as sandbox:
        again = sandbox.values(calls[::-1])[::-1]
    paid: dict[str, list[Paid | str]] = {}
    same: dict[str, list[bool]] = {}
    for (name, *_), values, repeated in zip(calls, first, again, strict=True):
        paid.setdefault(name, []).append(_paid(values, settings.weight(name)))
        same.setdefault(name, []).append(values == repeated)
    if len(names) > 1:
        paid[TOGETHER] = [_sum(each) for each in zip(*paid.values(), strict=True)]
        same[TOGETHER] = [True] * len(wrong)
    return [
        _payment(name, kind, [i for i, probe in enumerate(wrong) if probe.kind == kind], rows, same[name], settings)
        for name, rows in paid.items()
        for kind in dict.fromkeys(probe.kind for probe in wrong)
    ]


def _payment(
    name: str, kind: str, mine: Sequence[int], rows: Sequence[Paid | str], same: Sequence[bool], s: RewardSettings
) -> Payment:
    judged = [row for i in mine if not isinstance(row := rows[i], str)]
    reasons = [row for i in mine if isinstance(row := rows[i], str)]
    more = [wrong - right for right, wrong in judged]
    return Payment(
        function=name,
        kind=kind,
        pairs=len(mine),
        outbids=sum(value > s.weight("accuracy") for value in more),
        prefers=sum(value > 0 for value in more) if kind in NOTHING else 0,
        failed=len(reasons) if name != TOGETHER else 0,
        unstable=sum(not same[i] for i in mine),
        worst=max(judged, key=lambda pair: pair[1] - pair[0], default=(0.0, 0.0)),
        reason=reasons[0] if reasons else "",
    )


def findings(payments: Sequence[Payment], limit: float) -> Iterator[str]:
    """Why nothing should be trained with these functions: what was found of more than this share of a sort's pairs, and
    of at least two."""
    for one in payments:
        right, wrong = one.worst
        found = {
            f"paid {wrong:g} for a wrong answer and {right:g} for the right one, which the accuracy does not make "
            "up for": one.outbids,
            f"failed ({one.reason})": one.failed,
            "returned something else when called again": one.unstable,
        }
        for what, count in found.items():
            if count >= 2 and count / one.pairs > limit:
                yield f"{one.where}: in {count} of {one.pairs} pairs of one sort it {what} ({one.kind})"


def remarks(payments: Sequence[Payment]) -> Iterator[str]:
    """What is no reason to refuse a function, but a way to be paid for nothing."""
    for one in payments:
        if one.prefers and not one.outbids and one.function != TOGETHER:
            right, wrong = one.worst
            yield (
                f"{one.where}: in {one.prefers} of {one.pairs} pairs it paid more for what says "
                f"nothing ({one.kind}) than for the right answer, at most {wrong:g} instead of {right:g}"
            )


def _paid(values: Sequence[float | None] | str, weight: float) -> Paid | str:
    if isinstance(values, str):
        return values
    right, wrong = values
    return (0.0, 0.0) if right is None or wrong is None else (weight * right, weight * wrong)


def _sum(each: Sequence[Paid | str]) -> Paid | str:
    """What all functions pay for one pair; of one that failed the reason."""
    known = [one for one in each if not isinstance(one, str)]
    failed = [one for one in each if isinstance(one, str)]
    return failed[0] if failed else (sum(right for right, _ in known), sum(wrong for _, wrong in known))


def _written(text: str) -> Completion:
    """A completion whose tokens are the bytes of the text: the audit knows no tokenizer."""
    return Completion(tuple(text.encode("utf-8", "surrogatepass")), (), "stop", text)
