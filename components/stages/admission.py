"""Stage `admission`: which training prompts go on to RL. What is suspicious is withheld for a person, or reported."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from components.config import Settings
from components.config.admission import Audit
from components.data.poisoning.audited import of_the_same_kind, to_audit
from components.data.poisoning.labels import LabelEvidence, suspicious_labels
from components.data.poisoning.planned import planned, refuse_few
from components.data.poisoning.sensitive import sensitive_prompts
from components.data.prompts import read_prompts
from components.files import read_json, write_json, write_jsonl
from components.layout import Layout
from components.progress import progress
from components.seeds import derive
from components.types import Prompt

SHOWN = 20
"""Flagged prompts that `admission.json` shows; `admission.jsonl` has all."""


def run(settings: Settings, layout: Layout) -> None:
    """Write `out/admission.jsonl` (one line a flagged prompt) and `out/admission.json`.

    Raises:
        InputError: what remains to train on is so little that one prompt could turn the policy.
    """
    limits = settings.admission
    prompts = read_prompts(layout.split("train"))
    provenance = read_json(layout.validation)["provenance"]
    audit = resolve(limits.label_audit, provenance["trusted"], otherwise="withhold")
    looked = resolve(limits.sensitive, provenance["trusted"], otherwise="report")
    words = sensitive_prompts(prompts, limits.sensitive_words) if looked != "off" else {}
    labels = audit_labels(settings, layout, prompts, words) if audit != "off" else {}
    alike = of_the_same_kind(prompts, labels)
    flagged = [
        flag(prompt, labels.get(prompt.id), alike.get(prompt.id), words.get(prompt.id), audit, looked)
        for prompt in prompts
        if prompt.id in labels or prompt.id in alike or prompt.id in words
    ]
    withheld = [row["id"] for row in flagged if row["withheld"]]
    plan = planned(len(prompts) - len(withheld), settings.train, settings.schedule, settings.clusters.k)
    refuse_few(plan, limits)
    write_jsonl(layout.admission_flags, flagged)
    write_json(
        layout.admission,
        {
            "verdict": "withheld" if withheld else "reported" if flagged else "clear",
            "prompts": len(prompts),
            "withheld": withheld,
            "flagged": flagged[:SHOWN],
            "label_audit": {
                "mode": audit,
                "audited": audited(settings, prompts, audit),
                "suspicious": len(labels),
                "alike": len(alike),
            },
            "sensitive": {"mode": looked, "found": len(words)},
            "planned": plan.to_dict(),
            "source": provenance,
        },
    )


def resolve(mode: Audit, trusted: bool, otherwise: Audit) -> Audit:
    """What ``auto`` means: off for sources whose labels are trusted."""
    return mode if mode != "auto" else "off" if trusted else otherwise


def audited(settings: Settings, prompts: Sequence[Prompt], audit: Audit) -> int:
    """How many prompts the label audit samples."""
    return 0 if audit == "off" else min(settings.admission.prompts, len(prompts))


def audit_labels(
    settings: Settings, layout: Layout, prompts: Sequence[Prompt], sensitive: Collection[str]
) -> Mapping[str, LabelEvidence]:
    """Sample the base policy on some of the prompts (see `to_audit`) and compare its answers with the labels."""
    from components.policy import load_policy  # with torch, which this stage does without when no label is audited
    from components.stages.triage import sample

    limits = settings.admission
    chosen = to_audit(prompts, sensitive, limits.prompts, derive(settings.seed, "admission"))
    policy = load_policy(layout.sft_checkpoint, settings.policy)
    with progress("admission", len(chosen)) as bar:
        groups = sample(policy, chosen, settings, layout, "admission", limits.samples, bar)
    return suspicious_labels(groups, limits, getattr(settings.reward.verifier, "marker", None))


def flag(
    prompt: Prompt,
    label: LabelEvidence | None,
    alike: str | None,
    words: Sequence[tuple[str, str]] | None,
    audit: Audit,
    looked: Audit,
) -> dict[str, Any]:
    """One line of `admission.jsonl`: why a person should look at this prompt, and whether it waits for that.

    ``alike``: id of a prompt with the same template and answer whose ``label`` is suspicious.
    """
    reasons = [label.words] if label else []
    if alike is not None:
        reasons.append(f"has the template and the answer of {alike}, whose label is suspicious")
    if words:
        reasons.append(f"about groups of people: {', '.join(f'{word} ({attribute})' for attribute, word in words)}")
    return {
        "id": prompt.id,
        "text": prompt.text,
        "answer": prompt.answer,
        "withheld": ((label is not None or alike is not None) and audit == "withhold")
        or (bool(words) and looked == "withhold"),
        "reasons": reasons,
        "label": label.to_dict() if label else None,
        "words": [word for _, word in words or []],
    }
