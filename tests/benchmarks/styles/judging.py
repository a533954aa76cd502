"""What the verifiers say of the cases, behind the fence that they have in a run, with their default settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from components.config.reward import RewardSettings
from components.rewards.sandbox import Sandbox
from components.types import Prompt, Score
from tests.benchmarks.styles.cases import Case

Outcome = Literal["accepted", "refused", "unscorable"]


class Judged(NamedTuple):
    """A case, and the verdict; ``reason`` is that of what is unscorable."""

    case: Case
    outcome: Outcome
    reason: str

    @property
    def unexpected(self) -> bool:
        """A right answer that is not accepted, or a wrong one that is not refused."""
        return self.outcome != ("accepted" if self.case.right else "refused")


def judge(cases: Sequence[Case], workers: int = 1) -> Iterator[Judged]:
    """The verdicts, by verifier and marker."""
    for verifier, marker in dict.fromkeys((case.verifier, case.marker) for case in cases):
        settings = RewardSettings.model_validate({"verifier": {"kind": verifier, "marker": marker}})
        own = [case for case in cases if (case.verifier, case.marker) == (verifier, marker)]
        limits = settings.sandbox.model_copy(update={"workers": workers})
        with Sandbox(settings.verifier, limits) as sandbox:
            scores = sandbox.judge([(prompt(case), case.text) for case in own])
        yield from (
            Judged(case, outcome(score), score.unscorable or "") for case, score in zip(own, scores, strict=True)
        )


def prompt(case: Case) -> Prompt:
    """The question that the completion answers."""
    return Prompt(id=case.kind, text=case.question, answer=case.reference, solution=case.reference)


def outcome(score: Score) -> Outcome:
    """Neither of the two verifiers gives parts of an accuracy."""
    if score.accuracy is None:
        return "unscorable"
    return "accepted" if score.accuracy == 1.0 else "refused"
