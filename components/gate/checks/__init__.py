"""What a checkpoint must show, a concept a file. A check reads the evidence and answers pass, fail or inconclusive.

- `data`, `verifier`, `admission`, `triage` — what training began with
- `health`, `completion` — how it went
- `evaluation`, `champion` — what came of it, on held-out prompts
- `canaries` — what training must not have cost
- `format` — what the checkpoint is: safetensors, and the same one all along
- `settings`, `stored`, `lineage` — of a candidate in the registry: its run judged itself as the policy wants, its
  evidence is whole, its signature holds, and it is known where it comes from

A new check is a function of `Evidence` and `Settings` that returns an `Answer`, and one entry below.
"""

from components.gate.checks import (
    admission,
    canaries,
    champion,
    completion,
    data,
    evaluation,
    format,
    health,
    lineage,
    settings,
    stored,
    triage,
    verifier,
)
from components.gate.checks.base import Answer, Check

CHECKS: dict[str, Check] = {
    "data validated": data.VALIDATED,
    "verifier audited": verifier.AUDITED,
    "prompts admitted": admission.ADMITTED,
    "triage": triage.ACCEPTED,
    "training health": health.HEALTHY,
    "training completed": completion.COMPLETED,
    "held-out gain": evaluation.GAIN,
    "truncated": evaluation.TRUNCATED,
    "unscorable": evaluation.UNSCORABLE,
    "contaminated": evaluation.CONTAMINATED,
    "canaries": canaries.KEPT,
    "checkpoint format": format.HARMLESS,
    "same checkpoint": format.SAME,
}
"""The run's own gate, and again when its checkpoint is to be promoted."""

AGAINST_CHAMPION: dict[str, Check] = {"gain over champion": champion.EVALUATED}
"""Only where a champion is named (evaluation.champion): the first checkpoint has none to be compared with."""

OF_A_CANDIDATE: dict[str, Check] = {
    "evidence": stored.WHOLE,
    "settings by policy": settings.KEPT,
    "health by policy": health.BY_POLICY,
    "gain over present champion": champion.PRESENT,
    "checkpoint signature": stored.SIGNED,
    "evidence signature": stored.ATTESTED,
    "lineage": lineage.KNOWN,
}
"""Besides those of the run, when its checkpoint is to be promoted."""

__all__ = ["AGAINST_CHAMPION", "CHECKS", "OF_A_CANDIDATE", "Answer", "Check"]
