"""Every check on some evidence, and what follows from them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.config import Settings
from components.config.judgement import JUDGED_BY
from components.errors import InputError
from components.files import sha256_json
from components.gate.checks import AGAINST_CHAMPION, CHECKS
from components.gate.evidence import Check, Evidence
from components.types import GateCheck, GateResult


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
