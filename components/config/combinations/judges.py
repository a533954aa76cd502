"""Verifiers and the sandbox that they share."""

from __future__ import annotations

from collections.abc import Iterator

from components.config.evaluation import ReasoningGymSuite
from components.config.reasoning_gym import ReasoningGymSource, ReasoningGymVerifier
from components.config.runners import CodeVerifier
from components.config.settings import Sections
from components.config.verifiers import Verifier


def second_code(s: Sections) -> Iterator[str]:
    """The second verifier runs in the sandbox of the first, and so do those of suites."""
    others = {f"evaluation.suites.{name}.verifier": suite.verifier for name, suite in s.evaluation.suites.items()}
    for name, verifier in {"audit.second": s.audit.second, **others}.items():
        if isinstance(verifier, CodeVerifier):
            yield from verifier.beyond(s.reward.sandbox, name)


def scorers_of_others(s: Sections) -> Iterator[str]:
    """The scorers of reasoning-gym judge its own problems, and its solutions must state an answer where one is read."""
    for name, verifier in {"reward.verifier": s.reward.verifier, "audit.second": s.audit.second}.items():
        if isinstance(verifier, ReasoningGymVerifier) and not isinstance(s.data.source, ReasoningGymSource):
            yield (
                f"{name}.kind reasoning_gym judges the problems of data.source.kind reasoning_gym only, and the source "
                f"is {s.data.source.kind}: set another kind"
            )
    for name, suite in s.evaluation.suites.items():
        gym = isinstance(suite, ReasoningGymSuite)
        if isinstance(suite.verifier or s.reward.verifier, ReasoningGymVerifier) and not gym:
            yield (
                f"evaluation.suites.{name} has no problems of reasoning_gym, so reward.verifier.kind reasoning_gym "
                f"cannot score it: set evaluation.suites.{name}.verifier"
            )


def probes_of_others(s: Sections) -> Iterator[str]:
    """The scorers of reasoning-gym cannot judge what a probe set generates."""
    for name, one in s.health.canaries.items():
        verified = one.generated in ("carries", "comparison") or (one.generated is None and one.format == "qa")
        if isinstance(s.reward.verifier, ReasoningGymVerifier) and verified and "generation" in one.by:
            yield (
                f"health.canaries.{name} has no problems of reasoning_gym, so reward.verifier.kind reasoning_gym "
                f"cannot judge its answers: set health.canaries.{name}.by: [likelihood]"
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
