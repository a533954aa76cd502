"""What a checkpoint must show. A check reads the evidence and answers pass, fail or inconclusive.

- `beginning` — what training began with
- `health` — how it went, and whether it came to its end
- `evaluation` — what came of it, on held-out prompts, and what it must not have cost
- `stored` — what the checkpoint is: safetensors, and the same one all along; and of a candidate in the registry: its
  run judged itself as the policy wants, its evidence is whole, and its signatures hold
- `lineage` — it is known where a candidate comes from

A new check is a function of `Evidence` and `Settings` that returns an `Answer`, and one entry below.
"""

from components.gate.checks import beginning, evaluation, health, lineage, stored
from components.gate.evidence import Check

CHECKS: dict[str, Check] = {
    "data validated": beginning.VALIDATED,
    "verifier audited": beginning.AUDITED,
    "prompts admitted": beginning.ADMITTED,
    "triage": beginning.ACCEPTED,
    "training health": health.HEALTHY,
    "training completed": health.COMPLETED,
    "held-out gain": evaluation.GAIN,
    "truncated": evaluation.TRUNCATED,
    "unscorable": evaluation.UNSCORABLE,
    "contaminated": evaluation.CONTAMINATED,
    "canaries": evaluation.CANARIES_KEPT,
    "checkpoint format": stored.HARMLESS,
    "same checkpoint": stored.SAME,
}
"""The run's own gate, and again when its checkpoint is to be promoted."""

AGAINST_CHAMPION: dict[str, Check] = {"gain over champion": evaluation.OVER_CHAMPION}
"""Only where a champion is named (evaluation.champion): the first checkpoint has none to be compared with."""

OF_A_CANDIDATE: dict[str, Check] = {
    "evidence": stored.WHOLE,
    "settings by policy": stored.BY_POLICY,
    "health by policy": health.BY_POLICY,
    "gain over present champion": evaluation.OVER_PRESENT_CHAMPION,
    "checkpoint signature": stored.SIGNED,
    "evidence signature": stored.ATTESTED,
    "lineage": lineage.KNOWN,
}
"""Besides those of the run, when its checkpoint is to be promoted."""
