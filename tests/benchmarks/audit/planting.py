"""Audits a verifier with one planted hole."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, cast

from components.audit.measure import Audit, measure
from components.audit.probes import Probe, make_probes
from components.audit.verdict import judge_audit
from components.config.answers import AnswerKind
from components.config.audit import AuditSettings
from components.config.base import Section
from components.config.reward import RewardSettings
from components.rewards import build_verifier
from components.rewards.sandbox import Sandbox
from components.types import Prompt, Score
from tests.benchmarks.audit.corpus import CORPORA, prompts
from tests.benchmarks.audit.holes import Hole

VERIFIERS: dict[str, dict[str, Any]] = {
    "number": {"kind": "numeric"},
    "expression": {"kind": "math"},
    "text": {"kind": "exact", "marker": "####"},
    "choice": {"kind": "multiple_choice"},
    "json": {"kind": "json", "marker": "####"},
    "calculation": {"kind": "countdown", "marker": "####"},
    "code": {"kind": "code", "seconds": 1.0},
    "skeleton": {"kind": "structure"},
}
"""Kind of answers -> settings of the verifier whose form of answers the probes have."""
SEEN = 12_000


def section(answers: str) -> Section:
    """Settings of the verifier for one kind of answers."""
    return RewardSettings.model_validate({"verifier": VERIFIERS[answers]}).verifier


@cache
def probes(answers: str) -> tuple[Probe, ...]:
    """What the audit tries on the corpus of one kind."""
    verifier = build_verifier(cast(Any, section(answers)))
    return tuple(make_probes(verifier, prompts(answers, verifier.wrap), cast(AnswerKind, answers)))


class Planted:
    """In the place of a sandbox: judges every probe rightly, but where the hole is. Holes that
    do not hang do not see texts of more than `SEEN` characters, which careless patterns need minutes for."""

    def __init__(self, known: Sequence[Probe], hole: Hole | None = None) -> None:
        self._right = {(probe.prompt.id, probe.text): probe.right for probe in known}
        self._bombs = {probe.text for probe in known if probe.quick}
        self._hole = hole

    def judge(self, items: Sequence[tuple[Prompt, str]]) -> list[Score]:
        return [self._score(prompt, text) for prompt, text in items]

    def _score(self, prompt: Prompt, text: str) -> Score:
        right, hole = self._right[prompt.id, text], self._hole
        if hole is None or (text not in self._bombs if hole.effect == "hangs" else len(text) > SEEN):
            return Score(float(right))
        if (
            (hole.effect == "accepts" and right)
            or (hole.effect == "refuses" and not right)
            or not hole.fires(prompt, text)
        ):
            return Score(float(right))
        return Score(None, unscorable="timeout: no verdict") if hole.effect == "hangs" else Score(float(not right))


def reasons(answers: str, hole: Hole | None = None) -> list[str]:
    """What the audit says against single sorts of answers, with this hole or with none."""
    known = probes(answers)
    judge = cast(AbstractContextManager[Sandbox], nullcontext(Planted(known, hole)))
    return sorts(measure(known, lambda: judge, 2, open_quick=lambda: judge))


def sorts(audit: Audit) -> list[str]:
    """The reasons that concern one sort of answers; corpora are too small for those that concern all prompts."""
    return [reason for reason in judge_audit(audit, AuditSettings())["reasons"] if "of one sort" in reason]


def real(answers: str) -> list[str]:
    """What the audit says against the project's own verifier, behind its fence."""
    settings = RewardSettings.model_validate({"verifier": VERIFIERS[answers]})
    limits = settings.sandbox
    quick = limits if answers == "code" else limits.model_copy(update={"timeout": AuditSettings().quick_seconds})
    verifier = settings.verifier
    return sorts(measure(probes(answers), lambda: Sandbox(verifier, limits), 2, None, lambda: Sandbox(verifier, quick)))


__all__ = ["CORPORA", "probes", "real", "reasons", "section"]
