"""Stage `admission`: which training prompts go on to RL. What is suspicious is withheld for a person, or reported.

What the label audit samples from the base policy is kept for triage.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from components.config import Settings
from components.config.admission import Audit
from components.data.prompts import read_prompts
from components.files import read_json, write_json, write_jsonl
from components.layout import Layout
from components.poisoning.audited import of_the_same_kind, to_audit
from components.poisoning.labels import LabelEvidence, suspicious_labels, undecided
from components.poisoning.planned import planned, refuse_few
from components.poisoning.sensitive import sensitive_prompts
from components.progress import progress
from components.proportion import SampleSize, audit_sample, ranked_prompts
from components.seeds import derive
from components.types import Group, Prompt

SHOWN = 20
"""Flagged prompts that `admission.json` shows; `admission.jsonl` has all."""


def run(settings: Settings, layout: Layout) -> None:
    """Write `out/admission.jsonl` (one line a flagged prompt), `out/admission.json` and `out/base.jsonl` (answers).

    Raises:
        InputError: what remains to train on is so little that one prompt could turn the policy.
    """
    limits = settings.admission
    prompts = read_prompts(layout.split("train"))
    provenance = read_json(layout.validation)["provenance"]
    audit = resolve(limits.label_audit, provenance["trusted"], otherwise="withhold")
    looked = resolve(limits.sensitive, provenance["trusted"], otherwise="report")
    words = sensitive_prompts(prompts, limits.sensitive_words) if looked != "off" else {}
    size = audit_sample(settings)
    groups = audit_answers(settings, layout, prompts, words, size) if audit != "off" else []
    labels = suspicious_labels(groups, limits, settings.reward.verifier)
    alike = of_the_same_kind(prompts, labels)
    flagged = [
        flag(prompt, labels.get(prompt.id), alike.get(prompt.id), words.get(prompt.id), audit, looked)
        for prompt in prompts
        if prompt.id in labels or prompt.id in alike or prompt.id in words
    ]
    withheld = [row["id"] for row in flagged if row["withheld"]]
    drawn_from = min(len(prompts) - len(withheld), ranked_prompts(settings) or len(prompts))
    plan = planned(drawn_from, settings.train, settings.schedule, settings.clusters.k)
    refuse_few(plan, limits)
    write_jsonl(layout.admission_flags, flagged)
    if audit == "off":
        write_jsonl(layout.base_answers, [])
    write_json(
        layout.admission,
        {
            "verdict": "withheld" if withheld else "reported" if flagged else "clear",
            "prompts": len(prompts),
            "withheld": withheld,
            "flagged": flagged[:SHOWN],
            "label_audit": {
                "mode": audit,
                "audited": len(groups),
                "coverage": round(len(groups) / len(prompts), 6) if prompts else 0.0,
                "completions": sum(len(group.completions) for group in groups),
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


def audit_answers(
    settings: Settings, layout: Layout, prompts: Sequence[Prompt], sensitive: Collection[str], size: SampleSize
) -> list[Group]:
    """Completions of the base policy for some of the prompts (see `to_audit`).

    First ``size.samples`` of each; then, where a label can still turn out to be suspicious, the rest of
    ``admission.samples``. So what is found is what that many samples of every prompt would find.
    """
    from components.kept_groups import write_groups
    from components.policy import load_policy  # with torch, which this stage does without when no label is audited
    from components.rollout.collect import joined
    from components.stages.triage import sample

    limits = settings.admission
    chosen = to_audit(prompts, sensitive, size.prompts, derive(settings.seed, "base"))
    policy = load_policy(layout.sft_checkpoint, settings.policy)
    with progress("admission", len(chosen)) as bar:
        groups = sample(policy, chosen, settings, layout, "admission", size.samples, bar)
        write_groups(layout.base_answers, groups)
    missing = limits.samples - size.samples
    unclear = [group.prompt for group in groups if undecided(group, limits.samples, limits, settings.reward.verifier)]
    if not (missing and unclear):
        return groups
    with progress("admission", len(unclear)) as bar:
        more = sample(policy, unclear, settings, layout, "admission again", missing, bar)
    further = {group.prompt.id: group for group in more}
    return [joined(group, further[group.prompt.id]) if group.prompt.id in further else group for group in groups]


def flag(
    prompt: Prompt,
    label: LabelEvidence | None,
    alike: str | None,
    sensitive: Sequence[tuple[str, str]] | None,
    audit: Audit,
    looked: Audit,
) -> dict[str, Any]:
    """One line of `admission.jsonl`: why a person should look at this prompt, and whether it waits for that.

    ``alike``: id of a prompt with the same template and answer whose ``label`` is suspicious.
    """
    reasons = [label.words] if label else []
    if alike is not None:
        reasons.append(f"has the template and the answer of {alike}, whose label is suspicious")
    if sensitive:
        reasons.append(f"about groups of people: {', '.join(f'{word} ({attribute})' for attribute, word in sensitive)}")
    return {
        "id": prompt.id,
        "text": prompt.text,
        "answer": prompt.answer,
        "withheld": ((label is not None or alike is not None) and audit == "withhold")
        or (bool(sensitive) and looked == "withhold"),
        "reasons": reasons,
        "label": label.to_dict() if label else None,
        "words": [word for _, word in sensitive or []],
    }
