"""What a checkpoint must show. A check reads the evidence and answers pass, fail or inconclusive.

- `beginning` — what training began with
- `health` — how it went, and whether it came to its end
- `evaluation` — what came of it, on held-out prompts, and what it must not have cost
- `stored` — what the checkpoint is: safetensors, and the same one all along; and of a candidate in the registry: its
  run judged itself as the policy wants, its evidence is whole, its signatures hold, and it is known where it comes from

A new check is a function of `Evidence` and `Settings` that returns an `Answer`, and one entry below. `apply` makes
checks on some evidence, `conclude` states what follows from them together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.config import Settings
from components.config.judgement import JUDGED_BY
from components.errors import InputError
from components.files import sha256_json
from components.gate.checks import beginning, evaluation, health, stored
from components.gate.evidence import Check, Evidence
from components.types import GateCheck, GateResult

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
    "lineage": stored.KNOWN,
}
"""Besides those of the run, when its checkpoint is to be promoted."""


def judge(evidence: Evidence, settings: Settings) -> list[GateCheck]:
    """Every check of a run, in order; evidence that is missing fails the checks that need it."""
    return apply(CHECKS if settings.evaluation.champion is None else CHECKS | AGAINST_CHAMPION, evidence, settings)


def apply(checks: Mapping[str, Check], evidence: Evidence, settings: Settings) -> list[GateCheck]:
    """These checks, in order. Evidence of another form than a check expects is as good as none."""
    found = []
    for name, check in checks.items():
        how = check.how
        try:
            result, text = check.judge(evidence, settings)
        except InputError as error:
            result, text, how = "fail", error.what, check.missing
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            result, text = "fail", f"the evidence has another form than it must have ({type(error).__name__}: {error})"
        found.append(GateCheck(name, result, text, "" if result == "pass" else how))
    return found


def conclude(checks: Sequence[GateCheck]) -> GateResult:
    """Fail if any check fails, else inconclusive if any is, else pass."""
    results = {check.result for check in checks}
    return "fail" if "fail" in results or not results else "inconclusive" if "inconclusive" in results else "pass"


def policy_sha256(settings: Settings) -> str:
    """Digest of what the gate of a run goes by: its limits and the health settings.

    A limit on the gain over a champion counts where there is one.
    """
    limits = settings.gate.model_dump(mode="json")
    if settings.evaluation.champion is None:
        del limits["min_gain_over_champion"]
    return sha256_json({"gate": limits, "health": settings.health.model_dump(mode="json", include=JUDGED_BY)})
