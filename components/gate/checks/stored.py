"""Is the candidate in the registry what was proposed, and by whom it says?"""

from __future__ import annotations

from components.config import Settings
from components.gate.checks.base import Answer, Check
from components.gate.evidence import Evidence
from components.words import plural


def _whole(evidence: Evidence, _: Settings) -> Answer:
    """The record of a candidate is small and can be replaced; its evidence is stored under its digest."""
    omitted, said, kept = (evidence.read(name) for name in ("omitted", "record", "gate"))
    if said != kept:
        return "fail", "the answer of the run's gate in the candidate's record is not the one in its evidence"
    if evidence.value("gate", "result") not in ("pass", "inconclusive"):
        return "fail", f"the run's own gate says {evidence.value('gate', 'result')!r}"
    if omitted:
        return "pass", f"all of it but {plural(len(omitted), 'file')} too large to keep: {', '.join(sorted(omitted))}"
    return "pass", f"whole, {str(evidence.read('evidence'))[:12]}"


def _signed(evidence: Evidence, _: Settings) -> Answer:
    return "pass", f"signed by {evidence.read('signer')}"


def _attested(evidence: Evidence, _: Settings) -> Answer:
    return "pass", f"signed by {evidence.read('attester')}"


PROPOSE = "propose it again from its run: evenkeel run --resume RUN-ID"
TRUST = (
    "propose it again where a trusted key is (evenkeel run --resume RUN-ID), or list the signer's public key under "
    "`signers` in configs/promotion/policy.yaml"
)
WHOLE = Check(_whole, PROPOSE, missing=PROPOSE)
ATTESTED = Check(_attested, TRUST, missing=TRUST)
SIGNED = Check(_signed, TRUST, missing=TRUST)
