"""May anything be trained on this verifier's word?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from components.config.audit import AuditSettings
from components.rewards.audit.measure import Audit, Kind


def judge_audit(audit: Audit, limits: AuditSettings) -> dict[str, Any]:
    """The content of `audit.json`: verdict, every reason against the verifier, and the figures."""
    reasons = [*_false_positives(audit, limits), *_false_negatives(audit, limits), *_unstable(audit)]
    return {
        "verdict": "fail" if reasons else "pass",
        "reasons": reasons,
        "prompts": audit.prompts,
        "false_positive": audit.pooled(right=False).to_dict(),
        "false_negative": audit.pooled(right=True).to_dict(),
        "repeated": audit.repeated,
        "unstable": audit.unstable,
        "unscorable": audit.unscorable,
        "kinds": [kind.to_dict() for kind in audit.kinds],
        "limits": {
            "max_false_positive": limits.max_false_positive,
            "max_false_negative": limits.max_false_negative,
        },
    }


def _false_positives(audit: Audit, limits: AuditSettings) -> Iterator[str]:
    """Too many in all, or one sort of wrong answer that is surely accepted too often, however rare it is in all."""
    limit, pooled = limits.max_false_positive, audit.pooled(right=False)
    if pooled.high > limit:
        more = "" if pooled.count else "; nothing wrong was accepted, but that is too few probes: raise audit.prompts"
        yield (
            f"{pooled.count} of {pooled.n} wrong answers were accepted, which may be as many as {pooled.high:.1%}; "
            f"audit.max_false_positive allows {limit:.1%}{more}"
        )
    for kind in audit.kinds:
        if not kind.right and kind.wrong.low > limit:
            yield f"{_counted(kind)} accepted ({kind.name})"


def _false_negatives(audit: Audit, limits: AuditSettings) -> Iterator[str]:
    limit, pooled = limits.max_false_negative, audit.pooled(right=True)
    if pooled.rate > limit:
        yield (
            f"{pooled.count} of {pooled.n} right answers were refused ({pooled.rate:.1%}); "
            f"audit.max_false_negative allows {limit:.1%}"
        )
    for kind in audit.kinds:
        if kind.right and kind.wrong.low > limit:
            yield f"{_counted(kind)} refused ({kind.name})"


def _counted(kind: Kind) -> str:
    sort = "right" if kind.right else "wrong"
    return f"{kind.wrong.count} of {kind.wrong.n} {sort} answers of one sort were"


def _unstable(audit: Audit) -> Iterator[str]:
    if audit.unstable:
        yield f"{audit.unstable} of {audit.repeated} answers were not judged the same every time"
