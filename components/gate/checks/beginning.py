"""What training began with: its data, its verifier, its prompts and its checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from components.config import Settings
from components.config.judgement import GateSettings
from components.errors import InputError
from components.gate.evidence import Answer, Check, Evidence


def _validated(evidence: Evidence, settings: Settings) -> Answer:
    """Were the data validated, and was not too much of them left out?"""
    rows, bad = evidence.number("validation", "rows"), evidence.number("validation", "quarantined")
    if not 0 <= bad <= rows:
        raise InputError(f"validation: {bad:g} of {rows:g} rows cannot be in quarantine")
    limit = settings.gate.max_quarantined
    sound = evidence.value("validation", "success") is True and rows > 0 and bad <= limit * rows
    return "pass" if sound else "fail", f"{rows:.0f} rows validated, {bad:.0f} quarantined, limit {limit:.1%}"


def _audited(evidence: Evidence, settings: Settings) -> Answer:
    """Could the verifier be trusted? By the figures, and not by the verdict alone: the audit went by limits that the
    run has set."""
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


def _admitted(evidence: Evidence, _: Settings) -> Answer:
    """Were suspicious training prompts kept out?"""
    withheld, flagged = len(evidence.value("admission", "withheld")), len(evidence.value("admission", "flagged"))
    if not flagged:
        return "pass", "no training prompt is suspicious"
    return "pass", f"{withheld} training prompts withheld; out/admission.jsonl says what a person should read"


def _accepted(evidence: Evidence, _: Settings) -> Answer:
    """Was the checkpoint fit for training?"""
    verdict, trained = evidence.value("triage", "verdict"), evidence.value("train", "triage")
    if (verdict, trained) == ("accept", "accept"):
        return "pass", "the SFT checkpoint was accepted for RL"
    if (verdict, trained) == ("refuse", "overridden") and (reason := evidence.value("train", "override")):
        reasons = "; ".join(map(str, evidence.value("triage", "reasons")))
        return "inconclusive", f"refused ({reasons}), overridden: {reason}"
    return "fail", f"triage said {verdict!r} and training says {trained!r}, with no reason given"


VALIDATED = Check(_validated, "mend the rows that out/data/quarantine.jsonl names, and run again")
AUDITED = Check(_audited, "mend the verifier until its audit passes (out/audit.html shows what it took), and run again")
ADMITTED = Check(_admitted, "run the stage admission again")
ACCEPTED = Check(_accepted, "begin with a checkpoint that triage accepts, or give the reason in triage.override")
