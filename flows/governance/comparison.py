"""The gate's present judgement of a candidate, compared with the present champion, by its own run or now.

A comparison that is made now takes a minute or more. If all verdicts are settled and a signing key is here, it is
stored in the registry as `comparisons/<candidate>-<champion>.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from components.config import load
from components.config.promotion import load_policy
from components.errors import InputError
from components.files import dump_json, sha256_bytes
from components.gate.candidate import comparison_of, judge_candidate, recorded_comparison
from components.gate.evidence import Evidence
from components.layout import Layout
from components.registry import Candidate, Conflict, History, Store
from components.registry.attestations import Attestation, attest, attested, of_comparison
from components.types import Judgement
from flows.governance.registry import RegistryContext, signing_key, verified

ANSWERS = Path(".state/evaluations")
"""Cache of answers to test prompts, in the project."""


def judge(context: RegistryContext, candidate: Candidate, history: History, *, compare: bool = True) -> Judgement:
    """The gate's judgement of a candidate by the project's policy, compared with the champion of these records.

    Args:
        compare: evaluate both on the same prompts if that was not done yet, which takes a minute or more. Without it
            the check of the comparison fails.
    """
    champion = history.champion
    comparison = (
        comparison_with(context.project, context.store, candidate, champion.digest, now=compare) if champion else None
    )
    return judge_candidate(context.store, candidate, context.policy, comparison)


def comparison_with(
    project: Path, store: Store, candidate: Candidate, champion: str, *, now: bool = True
) -> dict[str, Any] | None:
    """The comparison as `components.gate.candidate.judge_candidate` takes it; None for the champion itself or without
    evidence.

    A broken candidate is passed to the gate as ``problem``, a comparison that is still to be made as ``pending``.

    Args:
        now: compare them where that was not done yet.

    Raises:
        InputError: they could not be compared here and now (a full disk, or a champion whose signature does not hold,
            say). That is no verdict on the candidate, which can be judged again.
    """
    if candidate.evidence is None or candidate.digest == champion:
        return None
    name = comparison_key(candidate, champion)
    kept = _stored(project, store, name, candidate, champion)
    try:
        if (recorded := recorded_comparison(store, candidate, champion)) is not None:
            return recorded
        if kept is not None:
            return kept
        if not now:
            return {"pending": True, "candidate": candidate.digest, "champion": champion}
        ours = verified(project, store, candidate.digest)
    except InputError as error:
        return {"problem": error.what, "candidate": candidate.digest, "champion": champion}
    return _gate_input(_compute(project, store, name, candidate, ours, champion))


def comparison_key(candidate: Candidate, champion: str) -> str:
    """Where the registry keeps the comparison of the two."""
    return f"comparisons/{candidate.digest}-{champion}.json"


def _stored(project: Path, store: Store, name: str, candidate: Candidate, champion: str) -> dict[str, Any] | None:
    """The stored comparison on the same evidence; None if there is none that the gate can use, or no trusted
    signature."""
    stored = store.get(name)
    if stored is None:
        return None
    try:
        attested(store, _attestation(candidate, champion, stored[0]), load_policy(project).signers)
        figures = json.loads(stored[0])
        gate_input = _gate_input(figures)
        of = (figures["evidence"], gate_input["candidate"], gate_input["champion"])
        said = Evidence({"comparison": gate_input})
        said.share("comparison", "unscorable_share")
        if figures["gain"] is not None:  # None: no prompt that both could be scored on
            said.gain("comparison")
            said.number("comparison", "n")
    except (InputError, ValueError, TypeError, LookupError, RecursionError):
        return None  # it is made again
    return gate_input if of == (candidate.evidence, candidate.digest, champion) else None


def _gate_input(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The gate's input from the figures of `compare_with_champion`."""
    found = {"gain_over_champion": figures["gain"], "champion": figures["figures"]["champion"]}
    return comparison_of(found, figures["candidate"], figures["champion"])


def _compute(
    project: Path, store: Store, name: str, candidate: Candidate, ours: Path, champion: str
) -> Mapping[str, Any]:
    """Evaluate both on the candidate's test prompts; ``ours`` is its checkpoint."""
    from components.evaluation.against import compare_with_champion  # loads torch

    evidence = Layout(store.tree(str(candidate.evidence)))
    theirs = verified(project, store, champion)
    figures = compare_with_champion(load(evidence.params), evidence, ours, theirs, project / ANSWERS)
    kept = {**figures, "evidence": candidate.evidence}
    if not figures["settled"]:
        return kept  # a verdict failed for a transient reason: the next call compares again
    stored = store.get(name)
    key = signing_key(project, load_policy(project))
    if key is None:
        return kept  # unsigned, so no later call could trust it
    data = dump_json(kept).encode()
    attest(store, _attestation(candidate, champion, data), key)
    with suppress(Conflict):  # another process stored the same one
        store.compare_and_swap(name, data, None if stored is None else stored[1])
    return kept


def _attestation(candidate: Candidate, champion: str, data: bytes) -> Attestation:
    return of_comparison(candidate.digest, champion, sha256_bytes(data))
