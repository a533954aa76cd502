"""Does the checkpoint keep what its probe sets measure?"""

from __future__ import annotations

from components.canaries.comparison import NO_SETS
from components.canaries.verdict import HOW, judge_canaries
from components.config import Settings
from components.gate.checks.base import Answer, Check
from components.gate.evidence import Evidence


def _kept(evidence: Evidence, settings: Settings) -> Answer:
    """Every set that the run's settings have or the policy's `gate.canaries` requires. Whoever starts a run chooses its
    sets; a policy that wants some must name them."""
    found = evidence.read("canaries")
    if not settings.health.canaries and not settings.gate.canaries:
        return "pass", NO_SETS
    return judge_canaries(found, settings.health.canaries, settings.gate.canaries)


KEPT = Check(_kept, HOW)
