"""What goes with an environment, which runs the episodes and judges them."""

from __future__ import annotations

from collections.abc import Iterator

from components.config.environments import EnvironmentVerifier, VerifiersSource
from components.config.settings import Sections


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
    if not isinstance(s.reward.verifier, EnvironmentVerifier):
        return
    if s.audit.second is not None:
        yield "audit.second judges texts, and the completions of an environment are conversations; leave it out"
    for name, suite in s.evaluation.suites.items():
        if suite.verifier is None:
            yield (
                f"evaluation.suites.{name} is not played in the environment, so reward.verifier.kind environment "
                f"cannot score it: set evaluation.suites.{name}.verifier"
            )
    for name, one in s.health.canaries.items():
        verified = one.generated in ("carries", "comparison") or (one.generated is None and one.format == "qa")
        if verified and "generation" in one.by:
            yield (
                f"health.canaries.{name} is not played in the environment, so reward.verifier.kind environment cannot "
                f"judge its answers: set health.canaries.{name}.by: [likelihood]"
            )
