"""Could the verifier be trusted?"""

from __future__ import annotations

from collections.abc import Iterator

from components.config import Settings
from components.config.judgement import GateSettings
from components.errors import InputError
from components.gate.checks.base import Answer, Check
from components.gate.evidence import Evidence


def _audited(evidence: Evidence, settings: Settings) -> Answer:
    """By the figures, and not by the verdict alone: the audit went by limits that the run has set."""
    verdict, trained = evidence.value("audit", "verdict"), evidence.value("train", "audit")
    rate, bound = (evidence.share("audit", "false_positive", key) for key in ("rate", "high"))
    refused, sorts = evidence.share("audit", "false_negative", "rate"), list(_sorts(evidence, settings.gate))
    if (verdict, trained) == ("pass", "pass"):
        wrong, right = settings.gate.max_false_positive, settings.gate.max_false_negative
        sound = rate <= bound <= wrong and refused <= right and not sorts
        accepted = f"prompts of which a wrong answer was accepted: {rate:.1%}, at most {bound:.1%}, limit {wrong:.1%}"
        text = f"{accepted}; of which a right one was refused: {refused:.1%}, limit {right:.1%}"
        return "pass" if sound else "fail", "; ".join([text, *sorts])
    if (verdict, trained) == ("fail", "overridden") and (reason := evidence.value("train", "audit_override")):
        reasons = "; ".join(map(str, evidence.value("audit", "reasons")))
        return "inconclusive", f"failed ({reasons}), overridden: {reason}"
    return "fail", f"the audit said {verdict!r} and training says {trained!r}, with no reason given"


def _sorts(evidence: Evidence, limits: GateSettings) -> Iterator[str]:
    """Sorts of answers that were judged wrongly too often; a single answer may be a flaw of its prompt."""
    for kind in evidence.value("audit", "kinds"):
        name, must_be, wrong, probes = (kind[key] for key in ("kind", "must_be", "judged_wrongly", "probes"))
        if must_be not in ("accepted", "refused") or not 0 <= wrong <= probes:
            raise InputError(f"audit: {wrong} of {probes} answers judged wrongly that must be {must_be} cannot be")
        limit = limits.max_false_negative if must_be == "accepted" else limits.max_false_positive
        if wrong > 1 and wrong / probes > limit:
            yield f"{wrong} of {probes} answers of one sort were not {must_be}, limit {limit:.1%} ({name})"


AUDITED = Check(_audited, "mend the verifier until its audit passes (out/audit.html shows what it took), and run again")
