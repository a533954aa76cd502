"""Did the run judge itself by settings that the policy allows?"""

from __future__ import annotations

from collections.abc import Mapping

from components.config import Settings
from components.config.governed import Bound, loosened
from components.gate.checks.base import Answer, Check
from components.gate.evidence import Evidence
from components.words import plural


def _kept(evidence: Evidence, settings: Settings) -> Answer:
    bounds: Mapping[str, Bound] = evidence.read("policy_bounds")
    if loose := list(loosened(settings, bounds)):
        return "fail", "; ".join(loose)
    return "pass", f"{plural(len(bounds), 'setting')} that decide checks keep to the policy"


KEPT = Check(_kept, "train again with settings that the policy allows, or list others for everybody (`runs` in it)")
