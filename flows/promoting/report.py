"""The page that an approver reads: of the stored evidence, with the gate's answer by the policy and the newest
comparison with the champion."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from components.config.promotion import Action
from components.directories import write_directory
from components.errors import InputError
from components.files import write_text
from components.layout import Layout
from components.registry import Candidate, Store, champion, read_candidate, sound_history
from components.types import Judgement
from flows.governance.checkpoint import CheckpointView
from flows.governance.comparison import comparison_key, judge
from flows.governance.policies import known_policies, problems
from flows.governance.registry import RegistryContext
from flows.run.parameters import DEMO
from flows.serving.pages import EVIDENCE, TYPES, addresses

if TYPE_CHECKING:
    from components.report import Run


def report(context: RegistryContext, candidate: Candidate, judgement: Judgement) -> str:
    """HTML of the page for a person who decides; the same as long as evidence, policy and champion are the same.

    Raises:
        InputError: the evidence is gone, damaged, or not what the page can be made of.
    """
    from components.report import render  # draws; loads what draws

    reference = _reference(context, candidate)
    return render(_run(context, candidate, judgement.to_dict(), judgement.policy_sha256, reference))


def pages(project: Path, store: Store, evidence: str | None, report: str | None = None) -> dict[str, str]:
    """Title -> address of each page of the stored evidence, where a browser finds it; none without evidence.

    They are those that were judged, and not those in the run's workspace, which may have changed since. They are copied
    every time, so that a person reads what is stored.

    Args:
        report: a page that knows what is known since the run, in place of the run's own.

    Raises:
        InputError: the stored evidence is not what it was.
    """
    if evidence is None:
        return {}
    folder, source = project / EVIDENCE / evidence, store.tree(evidence)

    def fill(target: Path) -> None:
        for path in sorted(source.rglob("*")):
            if path.is_file() and path.suffix in TYPES:
                copy = target / path.relative_to(source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
        if report is not None:
            write_text(Layout(target).report, report)

    write_directory(folder, fill)
    return addresses(Layout(folder), f"evidence/{evidence}")


def report_of(context: RegistryContext, found: CheckpointView) -> str:
    """HTML of the page: as the candidate was decided, compared with the champion of that time; else as it stands now.

    A candidate without a decision is compared with the champion first, which may take a minute.

    Raises:
        InputError: as `report`.
    """
    if found.decision is None:
        return report(context, found.candidate, judge(context, found.candidate, sound_history(context.store)))
    from components.report import render

    return render(run_of(context, found))


def run_of(context: RegistryContext, found: CheckpointView) -> Run:
    """The evidence of a candidate with what is known since. Nothing is evaluated.

    Raises:
        InputError: as `report`.
    """
    if (made := found.decision) is None:
        judged = {"result": found.result, "checks": list(found.checks)}
        return _run(context, found.candidate, judged, context.policy.sha256, _reference(context, found.candidate))
    record = found.stands_on or made
    problem = problems(context, sound_history(context.store)).get(record.number, "")
    decided = {name: getattr(record, name) for name in ("outcome", "by", "reason", "at", "number")}
    decided |= {"present": "champion" in found.names, "problem": problem}
    reference = None if made.previous == found.candidate.digest else made.previous
    candidate = replace(found.candidate, evidence=made.evidence or found.candidate.evidence)
    return _run(context, candidate, dict(made.gate), made.policy_sha256, reference, decided)


def _reference(context: RegistryContext, candidate: Candidate) -> str | None:
    """Digest of the present champion, where the candidate is another one."""
    present = champion(context.store)
    return None if present is None or present.digest == candidate.digest else present.digest


def _run(
    context: RegistryContext,
    candidate: Candidate,
    gate: dict[str, Any],
    policy: str,
    reference: str | None,
    decided: dict[str, Any] | None = None,
) -> Run:
    """``gate`` is the gate's result, ``policy`` the digest of its policy, ``reference`` the digest of the champion that
    the candidate is compared with."""
    from components.report import champion_of, load_evidence

    if candidate.evidence is None:
        raise InputError("the candidate has no evidence", where=candidate.digest, how="propose it again")
    found = None
    by = context.policy if policy == context.policy.sha256 else known_policies(context, [policy])[policy]
    if reference is not None:
        stored = read_candidate(context.store, reference)
        kept = stored.evidence if stored else None  # None: from before evidence was kept
        found = champion_of(reference, Layout(context.store.tree(kept)) if kept else None)
    return load_evidence(
        Layout(context.store.tree(candidate.evidence)),
        origin=candidate.run,
        decided=decided,
        judgement=gate,
        required=by.settings.gate.canaries if by else None,
        signed=frozenset(action for action in get_args(Action) if context.policy.settings.quorum(action).signed),
        config=None if context.config == DEMO else context.config,
        comparison=None if reference is None else _comparison(context.store, candidate, reference),
        champion=found,
    )


def _comparison(store: Store, candidate: Candidate, present: str) -> dict[str, Any] | None:
    """The comparison of the approval request; None where the run's own evaluation compares with this champion."""
    stored = store.get(comparison_key(candidate, present))
    try:
        figures = None if stored is None else json.loads(stored[0])
    except ValueError:
        return None  # it is made again when the candidate is judged
    return figures if isinstance(figures, dict) and figures.get("evidence") == candidate.evidence else None
