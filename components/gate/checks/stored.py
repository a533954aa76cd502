"""Is the checkpoint harmless to load and the one that was trained and evaluated, and is what the registry has of it
what was proposed, judged as the policy wants, and by whom it says?"""

from __future__ import annotations

from collections.abc import Mapping

from components.config import Settings
from components.config.governed import Bound, loosened
from components.gate.evidence import Answer, Check, Evidence
from components.words import plural


def _same(evidence: Evidence, _: Settings) -> Answer:
    found = {
        "checkpoint": evidence.read("checkpoint"),
        "train.json": evidence.value("train", "checkpoint_sha256"),
        "evaluation.json": evidence.value("evaluation", "checkpoint_sha256"),
        "canaries.json": evidence.value("canaries", "checkpoint_sha256"),
    }
    if len(set(found.values())) == 1:
        return "pass", "trained, evaluated and proposed checkpoint are the same"
    return "fail", "; ".join(f"{name} {digest!s:.12}" for name, digest in found.items())


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


def _by_policy(evidence: Evidence, settings: Settings) -> Answer:
    """Did the run judge itself by settings that the policy allows?"""
    bounds: Mapping[str, Bound] = evidence.read("policy_bounds")
    if loose := list(loosened(settings, bounds)):
        return "fail", "; ".join(loose)
    return "pass", f"{plural(len(bounds), 'setting')} that decide checks keep to the policy"


SAVE = "save the checkpoint again as safetensors with a tokenizer, and nothing that can run code"
PROPOSE = "propose it again from its run: evenkeel run --resume RUN-ID"
TRUST = (
    "propose it again where a trusted key is (evenkeel run --resume RUN-ID), or list the signer's public key under "
    "`signers` in configs/promotion/policy.yaml"
)
HARMLESS = Check(
    lambda evidence, _: ("pass", f"safetensors only, {evidence.read('checkpoint'):.12}"), SAVE, missing=SAVE
)
SAME = Check(_same, "run the stages evaluate and gate again on the checkpoint that training left")
WHOLE = Check(_whole, PROPOSE, missing=PROPOSE)
BY_POLICY = Check(
    _by_policy, "train again with settings that the policy allows, or list others for everybody (`runs` in it)"
)
SIGNED = Check(lambda evidence, _: ("pass", f"signed by {evidence.read('signer')}"), TRUST, missing=TRUST)
ATTESTED = Check(lambda evidence, _: ("pass", f"signed by {evidence.read('attester')}"), TRUST, missing=TRUST)
