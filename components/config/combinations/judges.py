"""Verifiers and the sandbox that they share, and what goes with an environment, which runs episodes and judges them."""

from __future__ import annotations

from collections.abc import Iterator

from components.config.answers import CodeVerifier
from components.config.environments import EnvironmentVerifier, VerifiersSource
from components.config.evaluation import ReasoningGymSuite
from components.config.reasoning_gym import ReasoningGymSource, ReasoningGymVerifier
from components.config.settings import Sections
from components.config.verifiers import Verifier

OUTSIDE = {
    "environment": "is not played in the environment",
    "reasoning_gym": "has no problems of reasoning_gym",
}
"""Why verifiers that judge their own source alone cannot judge another."""


def second_code(s: Sections) -> Iterator[str]:
    """The second verifier runs in the sandbox of the first, and so do those of suites."""
    others = {f"evaluation.suites.{name}.verifier": suite.verifier for name, suite in s.evaluation.suites.items()}
    for name, verifier in {"audit.second": s.audit.second, **others}.items():
        if isinstance(verifier, CodeVerifier):
            yield from verifier.beyond(s.reward.sandbox, name)


def scorers_of_others(s: Sections) -> Iterator[str]:
    """The scorers of reasoning-gym judge its own problems."""
    for name, verifier in {"reward.verifier": s.reward.verifier, "audit.second": s.audit.second}.items():
        if isinstance(verifier, ReasoningGymVerifier) and not isinstance(s.data.source, ReasoningGymSource):
            yield (
                f"{name}.kind reasoning_gym judges the problems of data.source.kind reasoning_gym only, and the source "
                f"is {s.data.source.kind}: set another kind"
            )


def other_problems(s: Sections) -> Iterator[str]:
    """A verifier that knows its own source alone cannot judge the answers to other problems."""
    for name, suite in s.evaluation.suites.items():
        judge = "reward.verifier" if suite.verifier is None else f"evaluation.suites.{name}.verifier"
        verifier = suite.verifier or s.reward.verifier
        if verifier.kind in OUTSIDE and not (verifier.kind == "reasoning_gym" and isinstance(suite, ReasoningGymSuite)):
            yield (
                f"evaluation.suites.{name} {OUTSIDE[verifier.kind]}, so {judge}.kind {verifier.kind} cannot score it: "
                f"set evaluation.suites.{name}.verifier"
            )
    kind = s.reward.verifier.kind
    for name, one in s.health.canaries.items():
        verified = one.generated in ("carries", "comparison") or (one.generated is None and one.format == "qa")
        if kind in OUTSIDE and verified and "generation" in one.by:
            yield (
                f"health.canaries.{name} {OUTSIDE[kind]}, so reward.verifier.kind {kind} cannot judge its answers: set "
                f"health.canaries.{name}.by: [likelihood]"
            )


def solutions_in_form(s: Sections) -> Iterator[str]:
    source = s.data.source
    if isinstance(source, ReasoningGymSource) and (form := _missing(s.reward.verifier, source.solution)):
        yield (
            f"data.source.solution ({source.solution!r}) lacks {form!r}, which reward.verifier looks for: add it, or "
            "change reward.verifier"
        )


def _missing(verifier: Verifier, solution: str) -> str | None:
    """What the verifier looks for before an answer, where the text lacks it."""
    tag = verifier.tag if isinstance(verifier, ReasoningGymVerifier) else None
    form = f"<{tag}>" if tag else verifier.marker
    return form if form and form not in solution else None


def environments(s: Sections) -> Iterator[str]:
    played, judged = isinstance(s.data.source, VerifiersSource), isinstance(s.reward.verifier, EnvironmentVerifier)
    if played != judged:
        yield (
            "data.source.kind verifiers and reward.verifier.kind environment go together: the environment that runs "
            "the episodes judges them, and nothing else can"
        )
    if played and s.rollout.tool is not None:
        yield "data.source.kind verifiers with rollout.tool: the environment has its own tools; leave rollout.tool out"
    if played and s.rollout.mixing is not None:
        yield "data.source.kind verifiers with rollout.mixing: every turn starts from plain tokens; leave it out"
    if played and s.dpo.pairs is not None:
        yield (
            "data.source.kind verifiers with dpo.pairs: these are texts, and an episode is a conversation; leave "
            "dpo.pairs out, and stage dpo learns from the episodes of the run"
        )


def judges_of_texts(s: Sections) -> Iterator[str]:
    """An environment cannot judge a text that was written outside of it."""
    if isinstance(s.audit.second, EnvironmentVerifier):
        yield "audit.second.kind environment judges episodes and no texts; set another kind"
    if isinstance(s.reward.verifier, EnvironmentVerifier) and s.audit.second is not None:
        yield "audit.second judges texts, and the completions of an environment are conversations; leave it out"
