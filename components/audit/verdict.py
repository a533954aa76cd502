"""May anything be trained on this verifier's word? And the audit as one offline page: no script, no network, the same
bytes for the same verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from components.audit.functions import Payment, findings, remarks
from components.audit.measure import Audit, Kind
from components.config import Settings
from components.config.audit import AuditSettings
from components.evaluation.statistics import wilson
from components.pages import render_page

SHOWN = 60
"""Characters of each text in a reason."""
TEMPLATE = Path(__file__).with_name("page.jinja")
FOUND = ("outbids", "prefers", "failed", "unstable")
"""Of functions only the sorts are shown of which something of this was found."""


def judge_audit(audit: Audit, limits: AuditSettings, functions: Sequence[Payment] = ()) -> dict[str, Any]:
    """The content of `audit.json`: verdict, every reason against the verifier or a function, and the figures.

    ``false_positive`` and ``false_negative`` count prompts, those of which a wrong answer was accepted or a right one
    refused; a kind counts its probes. Limits: the upper bound of the first, the observed rate of the second, and the
    observed rate of every kind of which two or more were judged wrongly.
    """
    reasons = [*_false_positives(audit, limits), *_false_negatives(audit, limits), *_unstable(audit)]
    reasons += findings(functions, limits.max_false_positive)
    return {
        "verdict": "fail" if reasons else "pass",
        "reasons": reasons,
        "remarks": [*remarks(functions)],
        "prompts": audit.prompts,
        "false_positive": asdict(audit.false_positive),
        "false_negative": asdict(audit.false_negative),
        "repeated": audit.repeated,
        "unstable": audit.unstable,
        "unscorable": audit.unscorable,
        "kinds": [kind.to_dict() for kind in audit.kinds],
        "functions": [asdict(one) for one in functions],
        "limits": {"max_false_positive": limits.max_false_positive, "max_false_negative": limits.max_false_negative},
    }


def unaudited(limits: AuditSettings) -> dict[str, Any]:
    """The content of `audit.json` for the rubric of an environment: it judges episodes, and no text can be tried on it.

    That is a failed audit. Whoever trusts the environment says why in ``audit.override``.
    """
    nothing = wilson(0, 0)
    audit = Audit(0, (), 0, 0, {}, nothing, nothing)
    reason = "the rubric of an environment judges episodes, so no answer that is known to be right or wrong was tried"
    return {**judge_audit(audit, limits), "verdict": "fail", "reasons": [reason]}


def _false_positives(audit: Audit, limits: AuditSettings) -> Iterator[str]:
    limit, prompts = limits.max_false_positive, audit.false_positive
    if prompts.high > limit:
        few = "; nothing wrong was accepted, but on too few prompts to know: raise audit.prompts, or give the data more"
        more = "" if prompts.count else few
        yield (
            f"of {prompts.count} of {prompts.n} prompts a wrong answer was accepted, which may be as many as "
            f"{prompts.high:.1%}; audit.max_false_positive allows {limit:.1%}{more}"
        )
    yield from _sorts(audit, False, limit)


def _false_negatives(audit: Audit, limits: AuditSettings) -> Iterator[str]:
    limit, prompts = limits.max_false_negative, audit.false_negative
    if prompts.rate > limit:
        yield (
            f"of {prompts.count} of {prompts.n} prompts a right answer was refused ({prompts.rate:.1%}); "
            f"audit.max_false_negative allows {limit:.1%}"
        )
    yield from _sorts(audit, True, limit)


def _sorts(audit: Audit, right: bool, limit: float) -> Iterator[str]:
    """Each sort of answers that was judged wrongly too often: by the observed rate, since a sort of few probes has a
    wide interval. A single one may be a flaw of its prompt."""
    for kind in audit.kinds:
        if kind.right == right and kind.wrong.count >= 2 and kind.wrong.rate > limit:
            verb = "refused" if right else "accepted or not judged in time" if kind.quick else "accepted"
            sort = f"{'right' if right else 'wrong'} answers of one sort were {verb} ({kind.name})"
            yield f"{kind.wrong.count} of {kind.wrong.n} {sort}{_example(kind)}"


def _example(kind: Kind) -> str:
    """One text that was judged wrongly, the question, its reference, and what to do."""
    if not kind.examples:
        return ""
    text, question, answer = (_short(kind.examples[0][name]) for name in ("text", "question", "answer"))
    advice = f"; {kind.advice}" if kind.advice else ""
    return f": {text} in answer to {question}, where {answer} is right{advice}"


def _short(text: str) -> str:
    return ascii(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")


def _unstable(audit: Audit) -> Iterator[str]:
    if audit.unstable:
        yield f"{audit.unstable} of {audit.repeated} answers were not judged the same every time"


def render(audit: Mapping[str, Any], settings: Settings) -> str:
    """HTML text of the page."""
    return render_page(
        TEMPLATE,
        audit=audit,
        functions=[one for one in audit["functions"] if any(one[key] for key in FOUND)],
        verifier=_as_yaml(settings.reward.verifier.model_dump(mode="json")),
        second=_as_yaml(settings.audit.second.model_dump(mode="json")) if settings.audit.second else None,
    )


def _as_yaml(settings: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(settings), sort_keys=False, default_flow_style=True, width=1000).strip()
