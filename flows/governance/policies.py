"""Whether decisions hold under the chain of the registry's policies, whose newest must be the project's own.

A record contains the digest of the policy that it was decided by. Anyone with write access to the registry could name a
policy that requires nothing. A policy is in force only if it is the project's present one, or if its approvers and
those of the policy before adopted it (`components/registry/adoption.py`). Times in records and commits are not trusted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from components.config.promotion import FILE, Policy, load_policy, own_signers
from components.errors import InputError
from components.files import read_json
from components.gate.candidate import judge_candidate
from components.layout import Layout
from components.registry import Candidate, History, PromotionRecord, read_candidate
from components.registry.adoption import unadopted
from components.registry.authorization import missing_approvals
from components.registry.policies import stored_policy
from components.registry.records import record_key
from components.registry.starters import in_evidence
from components.registry.witness import check_seen, witness_of
from flows.governance.registry import RegistryContext
from flows.host.git import git, resolve

PATHS = (FILE.parent.as_posix(), "configs/health")
"""What a policy is read from."""
HOW = (
    "where this clone is behind, fetch; where the policy has changed, adopt it (evenkeel adopt-policy --by YOUR-NAME, "
    "with --key YOUR-KEY where it wants signatures); else find out who decided that. A new record by the present "
    "policy settles it: approve another candidate, or roll back"
)


def known_policies(context: RegistryContext, wanted: Collection[str]) -> dict[str, Policy | None]:
    """Digest -> policy, or None: the project's own, those that the registry has stored, those of Git's history.

    A policy that lists no signers of checkpoints uses the key of the project.
    """
    own, present = own_signers(context.project), context.policy
    known = {one: present if one == present.sha256 else stored_policy(context.store, one) for one in wanted}
    known.update(policies_of(context.project, {digest for digest, policy in known.items() if policy is None}))
    for digest, policy in known.items():
        if policy is not None and not policy.signers:
            known[digest] = replace(policy, signers=own)
    return known


def policies_of(project: Path, wanted: Collection[str]) -> dict[str, Policy]:
    """Digest -> policy, of the wanted ones that Git's history has, on any branch: the digest identifies the policy, and
    finding it does not put it in force.

    Raises:
        InputError: Git cannot read the history.
    """
    if not wanted or not resolve(project, "HEAD"):
        return {}
    changing = git(project, "rev-list", "--full-history", "HEAD", "--branches", "--", *PATHS).splitlines()
    found = (policy for commit in changing if (policy := _at(project, commit)) is not None)
    return {policy.sha256: policy for policy in found if policy.sha256 in wanted}


def earlier_policy(context: RegistryContext, sha256: str) -> Policy:
    """The policy with this digest.

    Raises:
        InputError: neither the registry nor Git's history has it.
    """
    policy = known_policies(context, [sha256])[sha256]
    if policy is None:
        how = "fetch the whole history, in which it was committed"
        raise InputError(f"the policy {sha256[:12]} is nowhere to be found", where="the registry", how=how)
    return policy


def problems(context: RegistryContext, history: History) -> dict[int, str]:
    """Number -> why a record cannot be shown to rest on the approvals that its policy required.

    The champion's record must be one of the policy that the project has now, unless that policy was adopted since: who
    adopts a policy agrees to all earlier records. A record of the first schema, which stored no approvals, is a problem
    only if it made the champion.
    """
    known = known_policies(context, {digest for record in history.records for digest in _named(record)})
    said = {record.number: problem for record in history.records if (problem := _problem(record, known, history))}
    base = history.stands_on
    if base is None:
        return said
    if base.schema == 1:
        said.setdefault(base.number, "an earlier version made it, which kept no approvals")
    elif unheld := _not_in_force(base, history, context.policy, said) or _rejudged(context, base, history, known):
        said.setdefault(base.number, unheld)
    return said


def _rejudged(
    context: RegistryContext, base: PromotionRecord, history: History, known: Mapping[str, Policy | None]
) -> str:
    """Why the gate does not let the champion pass now, by the record that promoted it; "" where it does."""
    promotions = (one for one in reversed(history.records[: base.number]) if one.outcome == "promoted")
    record = next((one for one in promotions if one.digest == base.digest), None)
    policy = known.get(record.policy_sha256) if record else None
    if record is None or policy is None:
        return "no record promoted it"
    refused = refused_now(context, record, policy)
    return f"judged again, the gate does not let it pass: {refused}" if refused else ""


def refused_now(context: RegistryContext, record: PromotionRecord, policy: Policy) -> str:
    """Why a champion is refused by its evidence, by the gate or for want of approvals; "" where it is not.

    A record contains the gate's result, but anyone with write access to the registry can write records. Approvers sign
    a statement that names the evidence, so the result is computed again from that evidence. What the gate leaves to
    people takes a reason of everyone who approved, as when they did.
    """
    stored = read_candidate(context.store, record.digest)
    if stored is None:
        return "its candidate record is gone"
    candidate = replace(stored, evidence=record.evidence, gate=_gate_of(context, record, stored))
    judgement = judge_candidate(context.store, candidate, policy, None)
    if judgement.result == "fail":
        return "; ".join(check.words for check in judgement.checks if check.result == "fail")
    if judgement.result == "inconclusive" and not all(one.statement.reason for one in record.approvals):
        return "the gate is inconclusive, and not everyone who approved gave a reason"
    return missing_approvals(record, policy, starter=in_evidence(context.store, candidate))


def _gate_of(context: RegistryContext, record: PromotionRecord, stored: Candidate) -> Mapping[str, Any]:
    """The gate's answer in the evidence of a record: the candidate may have been proposed again since, with another."""
    if record.evidence is None:
        return stored.gate
    try:
        found = read_json(Layout(context.store.tree(record.evidence)).gate)
    except InputError:  # the judgement states what is wrong with the evidence
        return stored.gate
    return found if isinstance(found, dict) else stored.gate


def _named(record: PromotionRecord) -> tuple[str, ...]:
    """The digests of the policies that a record names."""
    if record.schema == 1:
        return ()
    return (record.policy_sha256, record.digest) if record.action == "adopt" else (record.policy_sha256,)


def _problem(record: PromotionRecord, known: Mapping[str, Policy | None], history: History) -> str:
    policies = [known[digest] for digest in _named(record)]
    for digest, policy in zip(_named(record), policies, strict=True):
        if policy is None:
            return f"it names the policy {digest[:12]}, which neither the registry nor this project's history has"
    match policies:
        case [Policy() as earlier, Policy() as new]:
            return unadopted(record, earlier, new)
        case [Policy() as policy]:
            return missing_approvals(record, policy, history.rejection(record.digest, record.number))
    return ""


def _not_in_force(base: PromotionRecord, history: History, policy: Policy, said: Collection[int]) -> str:
    """Why a champion does not hold under the present policy of the project; "" where it does."""
    if history.in_force != policy.sha256:
        return (
            f"the registry goes by the policy {history.in_force:.12}, and this project by {policy.sha256[:12]}, "
            "which was not adopted there"
        )
    if broken := [record.number for record in history.records[base.number :] if record.number in said]:
        return f"record {broken[0]}, which came after it, does not hold"
    if history.adopted < base.number and base.policy_sha256 != policy.sha256:
        return f"it was decided by the policy {base.policy_sha256[:12]}, and the present one was not adopted since"
    return ""


def check_champion(context: RegistryContext, history: History) -> None:
    """Refuse a champion that cannot be shown to have been approved.

    Raises:
        InputError: its record lacks approvals, or does not hold under the project's policy, or a witness has seen other
            records.
    """
    check_witness(context, history)
    if problem := problems(context, history).get(history.base):
        raise InputError(
            f"the champion cannot be shown to have been approved: {problem}", where=record_key(history.base), how=HOW
        )


def check_witness(context: RegistryContext, history: History) -> str:
    """The witness's statement about these records, where the policy names a witness.

    Raises:
        InputError: it has seen other records than the registry has.
    """
    witness = witness_of(context.policy)
    if witness is None:
        return "the policy names none"
    seen = check_seen(witness, context.store, history)
    later = len(history.records) - seen
    return f"it has seen record {seen}" + (f", and not yet the {later} after it" if later else "")


def check_recorded(project: Path, policy: Policy) -> None:
    """Refuse to decide by a policy that is not committed: the decision could not be checked against it later.

    Raises:
        InputError: it is not the policy of the commit that is checked out.
    """
    present = _at(project, "HEAD") if resolve(project, "HEAD") else None
    if present is None or policy.sha256 != present.sha256:
        raise InputError(
            "the promotion policy is not committed, so a decision could not be checked against it later",
            where=project / FILE,
            how=f"git add {' '.join(PATHS)} && git commit, or put it back: git checkout -- {' '.join(PATHS)}",
        )


def _at(project: Path, commit: str) -> Policy | None:
    """The policy of a commit; None where it had none, or none that this version can read."""
    listed = git(project, "ls-tree", "-r", "-z", commit, "--", *PATHS).split("\0")
    blobs = {path: about.split()[2] for about, _, path in (row.partition("\t") for row in listed if row)}
    if FILE.as_posix() not in blobs:
        return None
    with tempfile.TemporaryDirectory(prefix="evenkeel-policy-") as folder:
        for path, blob in blobs.items():
            if path.endswith(".yaml"):
                target = Path(folder) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(git(project, "cat-file", "blob", blob).encode(errors="surrogateescape"))
        try:
            return load_policy(Path(folder))
        except InputError:
            return None
