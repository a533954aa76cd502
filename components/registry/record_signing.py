"""Promotion records, signed with a key of the registry where the policy names one (`registry_key`).

The identity of a registry is a file in it, and a copy of the folder carries that. The private key lies elsewhere: what
was approved for this registry cannot become a record in a copy of it, and whoever can only write to the registry
appends none that counts.
"""

from __future__ import annotations

import base64
from dataclasses import replace

from components.config.keys import REGISTRY_KEY, registry_key_file
from components.config.promotion import Policy
from components.errors import InputError
from components.registry.keys import public_text, read_approver_key, verifies
from components.registry.records import PromotionRecord

HOW = (
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
        raise InputError("the policy was not read from a project, so no key is known", where="registry_key", how=HOW)
    path = registry_key_file(policy.project)
    if not path.is_file():
        what = "the policy requires records that are signed with the registry's key, and it is not here"
        raise InputError(what, where=path, how=HOW)
    key = read_approver_key(path)
    if public_text(key) != wanted:
        raise InputError("this is another key than the policy names (registry_key)", where=path, how=HOW)
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
