"""Does a record rest on the approvals that its policy requires, and on a signature where it names a key for that?

Whoever can write to the store could append one that does not: the chain of hashes proves that records were not changed,
and nothing about who wrote them. The identity of a registry is a file in it, and a copy of the folder carries that. The
private key (`registry_key`) lies elsewhere: what was approved for this registry cannot become a record in a copy of it.
"""

from __future__ import annotations

import base64
from dataclasses import replace

from components.config.keys import REGISTRY_KEY, registry_key_file
from components.config.promotion import Policy
from components.errors import InputError
from components.registry.clock import parse
from components.registry.keys import public_text, read_approver_key, verifies
from components.registry.records import RESTORE, PromotionRecord
from components.registry.standing import Terms, standing

KEY_HOW = (
    f"{REGISTRY_KEY} names its file, where you may have it; a new one (evenkeel keys new NAME --for registry) is a "
    "change of the policy"
)


def signed(record: PromotionRecord, policy: Policy) -> PromotionRecord:
    """The record with the signature that ``policy`` requires, or unchanged where it requires none.

    Raises:
        InputError: the private key is not here, cannot be used, or is another than the policy names.
    """
    wanted = policy.settings.registry_key
    if wanted is None:
        return record
    if policy.project is None:
        raise InputError(
            "the policy was not read from a project, so no key is known", where="registry_key", how=KEY_HOW
        )
    path = registry_key_file(policy.project)
    if not path.is_file():
        what = "the policy requires records that are signed with the registry's key, and it is not here"
        raise InputError(what, where=path, how=KEY_HOW)
    key = read_approver_key(path)
    if public_text(key) != wanted:
        raise InputError("this is another key than the policy names (registry_key)", where=path, how=KEY_HOW)
    return replace(record, signature=base64.b64encode(key.sign(record.signed_bytes())).decode())


def unsigned(record: PromotionRecord, policy: Policy) -> str:
    """What is wrong with the signature of a record by the policy that it was decided by; "" where nothing is."""
    wanted = policy.settings.registry_key
    if wanted is None:
        return ""
    if record.signature is None:
        return "it is not signed with the registry's key, which the policy names"
    if not verifies(wanted, base64.b64decode(record.signature), record.signed_bytes()):
        return "its signature is not one of the registry's key, which the policy names"
    return ""


def missing_approvals(
    record: PromotionRecord,
    policy: Policy,
    rejected: PromotionRecord | None = None,
    starter: tuple[str, ...] | None = None,
) -> str:
    """Which approvals, or which signature, a record lacks by the policy that it names; "" where it lacks none, or names
    another policy than this one.

    Args:
        rejected: the newest record before that rejected the same checkpoint.
        starter: who started the run, by the evidence; None leaves it out, as a candidate's record may have noted more
            names since.
    """
    if record.policy_sha256 != policy.sha256 or record.schema == 1:
        return ""
    if problem := unsigned(record, policy):
        return problem
    question = record.question
    doubtful = record.action == "promote" and record.gate.get("result") == "inconclusive"
    since = parse(rejected.at) if rejected else None
    terms = Terms(question, policy, parse(record.at), starter, doubtful, own_counts=starter is None, rejected=since)
    found = standing(record.approvals, terms)
    return "" if found.met else "; ".join(found.lines())


def check_approved(record: PromotionRecord, policy: Policy) -> None:
    """Refuse a record that the present policy would not have allowed, and that says it did.

    Raises:
        InputError: it lacks approvals; which, and why those that it has do not count.
    """
    if problem := missing_approvals(record, policy):
        lacks = f"record {record.number} says {record.outcome!r} without the approvals that the policy requires"
        raise InputError(f"{lacks}: {problem}", where=record.key, how=RESTORE)
