"""A stored candidate, judged again by the policy of the project: a run chooses its own settings, not this."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from components import registry
from components.checkpoints.checks import check_stored
from components.config import Settings, load
from components.config.documents import foreign
from components.config.promotion import OfAdopted
from components.errors import InputError
from components.files import read_json, read_text, sha256_json
from components.gate.bundle import read_omitted
from components.gate.checks import CHECKS, OF_A_CANDIDATE, apply, conclude
from components.gate.evidence import Evidence, attempt, collect
from components.layout import Layout
from components.registry.attestations import attested, of_evidence
from components.registry.base import Store
from components.registry.candidates import Candidate
from components.registry.signing import verify
from components.types import GateCheck, Judgement

if TYPE_CHECKING:
    from components.config.promotion import Policy

WITHOUT_EVIDENCE = ("checkpoint format", "checkpoint signature", "evidence")
"""The checks that can be made of a candidate whose evidence cannot be had."""


def judge_candidate(
    store: Store, candidate: Candidate, policy: Policy, comparison: Mapping[str, Any] | None
) -> Judgement:
    """Judge a candidate by what is stored of it. Nothing is written.

    Args:
        comparison: of the candidate with the present champion, see `comparison_of`; None where there is no champion.

    Returns:
        What is missing, damaged or not what it should be is a failed check, and no error.

    Raises:
        InputError: the registry cannot be reached, or its records are damaged.
    """
    history = registry.read_history(store)
    champion = history.champion
    facts: dict[str, Any] = {
        "candidate": candidate.digest,
        "champion": champion.digest if champion else None,
        "comparison": dict(comparison) if comparison is not None else None,
        "evidence": candidate.evidence,
        "policy_bounds": policy.settings.bounds,
        "policy_rules": policy.rules,
        "record": dict(candidate.gate),
    }
    tree = attempt(lambda: store.tree(candidate.digest))
    facts["checkpoint"] = attempt(lambda: sha256_json(check_stored(_known(tree))))
    facts["signer"] = attempt(lambda: verify(store, candidate.digest, policy.signers))
    facts["attester"] = attempt(
        lambda: attested(store, of_evidence(candidate.digest, _evidence(candidate)), policy.signers)
    )
    found = attempt(lambda: _read(store, candidate, facts))
    every = CHECKS | OF_A_CANDIDATE
    if isinstance(found, InputError):
        checks = {name: check for name, check in every.items() if name in WITHOUT_EVIDENCE}
        answers = apply(checks, Evidence({**facts, "omitted": found}), Settings())
    else:
        evidence, settings = found
        answers = apply(every, evidence, settings.model_copy(update={"gate": policy.settings.gate}))
        if settings.train.adopted is not None:
            answers = [_by_policy(answer, policy) for answer in answers]
    return Judgement(conclude(answers), tuple(answers), policy.sha256, candidate.evidence, history.base)


def _by_policy(answer: GateCheck, policy: Policy) -> GateCheck:
    """What the log of another trainer does not show fails, unless the policy leaves it to a person."""
    left_to_a_person = policy.settings.adopted
    if answer.name not in get_args(OfAdopted) or answer.name in left_to_a_person or answer.result != "inconclusive":
        return answer
    how = "train under watch, or let a person decide: list the check under `adopted` in configs/promotion/policy.yaml"
    return GateCheck(answer.name, "fail", answer.evidence, how)


def _evidence(candidate: Candidate) -> str:
    if candidate.evidence is None:
        raise InputError("the candidate was recorded without its evidence, by an earlier version")
    return candidate.evidence


def _known(value: Any) -> Any:
    """What is known already, or the reason why it is not, raised again."""
    if isinstance(value, InputError):
        raise value
    return value


def _read(store: Store, candidate: Candidate, facts: Mapping[str, Any]) -> tuple[Evidence, Settings]:
    """The evidence that was stored with a candidate, and the settings of its run."""
    layout = Layout(store.tree(_evidence(candidate)))
    omitted = read_omitted(layout)
    others = {name: partial(_known, value) for name, value in facts.items()}
    evidence = collect(
        layout,
        **others,
        gate=lambda: read_json(layout.gate),
        omitted=lambda: omitted,
        lineage=lambda: read_json(layout.lineage),
        lock=lambda: foreign(read_text(layout.lock), layout.lock),
        params=lambda: foreign(read_text(layout.params), layout.params),
        root=lambda: layout.root,
    )
    parts = {name: _with_reason(part, layout, omitted) for name, part in evidence.parts.items()}
    return Evidence(parts), load(layout.params)


def _with_reason(part: Any, layout: Layout, omitted: Mapping[str, Any]) -> Any:
    """The part; one that the bundle omitted gets the reason for that in place of "file not found"."""
    absent = {str(layout.root / name) for name in omitted}
    if isinstance(part, InputError) and part.where in absent:
        return InputError("left out of the evidence, too large to keep", where=part.where)
    return part


def comparison_of(figures: Mapping[str, Any], candidate: str, champion: str) -> dict[str, Any]:
    """What `judge_candidate` takes, out of figures as `out/evaluation.json` has them.

    Args:
        figures: with ``gain_over_champion`` and ``champion``, as
            `components.evaluation.summary.against_champion` gives them.
        candidate, champion: digests of the checkpoint that is judged, and of the one it was compared with.
    """
    gain, theirs = figures.get("gain_over_champion"), figures.get("champion")
    return {
        **(gain if isinstance(gain, dict) else {}),
        "unscorable_share": theirs.get("unscorable_share") if isinstance(theirs, dict) else None,
        "candidate": candidate,
        "champion": champion,
    }


def recorded_comparison(store: Store, candidate: Candidate, champion: str) -> dict[str, Any] | None:
    """What the run's own evaluation says about this champion; None where it was made with another one, or with none.

    Args:
        champion: digest of the present one.

    Raises:
        InputError: the evidence is gone or damaged, or cannot be read.
    """
    if candidate.evidence is None:
        return None
    layout = Layout(store.tree(candidate.evidence))
    named = load(layout.params).evaluation.champion
    figures = read_json(layout.evaluation) if layout.evaluation.is_file() else None
    if named is None or named.sha256 != champion or not isinstance(figures, dict) or "champion" not in figures:
        return None
    return comparison_of(figures, str(figures.get("checkpoint_sha256")), champion)
