"""Creation that is done once, even if answers are lost.

A request that was not answered may have been carried out. So nothing is sent again before it was looked whether the
object is there, and is ours, by the digest of its specification (annotation `evenkeel/spec`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from components.errors import CorrectableError
from components.launch.kubernetes.api.errors import Failure
from components.launch.kubernetes.api.requests import Requests
from components.launch.kubernetes.api.resources import Call
from components.launch.kubernetes.names import SPEC

STRICT = ("fieldValidation", "Strict")


def create(requests: Requests, call: Call, manifest: dict[str, Any]) -> dict[str, Any]:
    """The object as the server has it.

    Raises:
        Exists: another object has the name.
        ClusterError: see `wording`; where it is not known whether the object was created, the message says so.
    """
    attempts, unsure = requests.patience.begin(), False
    while True:
        try:
            return requests.once(call.method, call.path, [STRICT], manifest)
        except Failure as failure:
            unsure = unsure or failure.may_have_succeeded
            if unsure and (found := _ours(requests, call, manifest, failure)):
                return found
            passing = failure.passing or failure.contended
            if not passing or not attempts.again(failure.after or 0.0):
                raise _explained(requests.explained(call, failure), call, unsure and not failure.exists) from None


def _ours(requests: Requests, call: Call, manifest: dict[str, Any], failure: Failure) -> dict[str, Any] | None:
    """What an earlier attempt, or this one, created although no answer confirmed it."""
    try:
        found = requests.found(replace(call, verb="get"))
    except CorrectableError:
        raise _explained(requests.explained(call, failure), call, unsure=True) from None
    return found if found is not None and _same(found, manifest) else None


def _same(found: dict[str, Any], manifest: dict[str, Any]) -> bool:
    """Whether an object matches its manifest, and is not being deleted."""
    metadata, wanted = found["metadata"], manifest["metadata"].get("annotations", {}).get(SPEC)
    ours = bool(wanted) and (metadata.get("annotations") or {}).get(SPEC) == wanted
    return ours and not metadata.get("deletionTimestamp")


def _explained(error: CorrectableError, call: Call, unsure: bool) -> CorrectableError:
    """The error, with a word of warning where the object may be there."""
    if unsure:
        look = f"kubectl -n {call.namespace} get {call.resource.plural} {call.name}"
        error.what += f"; whether {call.what} was created is not known"
        error.how = f"see whether it is there: {look}; and then: {error.how or 'try again'}"
    return error
