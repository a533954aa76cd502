"""Statuses as a real API server (1.36) words them."""

from __future__ import annotations

from typing import Any

USER = "system:serviceaccount:evenkeel:evenkeel-launcher"


def status(code: int, reason: str, message: str, **details: Any) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    }


UNAUTHORIZED = status(401, "Unauthorized", "Unauthorized")
EXPIRED = status(410, "Expired", "The provided continue parameter is too old to display a consistent list result.")
GONE = status(410, "Expired", "too old resource version: 1 (2)")
BUSY = status(429, "TooManyRequests", "too many requests, please try again later", retryAfterSeconds=1)
CONTENDED = status(
    409,
    "Conflict",
    'Operation cannot be fulfilled on resourcequotas "compute": the object has been modified; please apply your '
    "changes to the latest version and try again",
    name="compute",
    kind="resourcequotas",
)
QUOTA = status(
    403,
    "Forbidden",
    'secrets "demo-1-learner-key" is forbidden: exceeded quota: compute, requested: secrets=1, used: secrets=5, '
    "limited: secrets=5",
    name="demo-1-learner-key",
    kind="secrets",
)
WEBHOOK_SILENT = status(
    500,
    "InternalError",
    'Internal error occurred: failed calling webhook "mjobset.kb.io": failed to call webhook: Post '
    '"https://jobset-webhook-service.jobset-system.svc:443/mutate": dial tcp 10.0.0.1:443: connect: connection refused',
)
WEBHOOK_DENIED = status(
    403, "Forbidden", 'admission webhook "images.example.com" denied the request: image is not signed'
)
INVALID_BY_JOBSET = status(
    403,
    "Forbidden",
    'admission webhook "vjobset.kb.io" denied the request: JobSet.jobset.x-k8s.io "demo-1" is invalid: '
    '[spec.network.subdomain: Invalid value: "A_B": must be a DNS label]',
)
UNKNOWN_FIELD = status(
    400,
    "BadRequest",
    'JobSet in version "v1alpha2" cannot be handled as a JobSet: strict decoding error: unknown field "spec.foo"',
)
INVALID = status(
    422,
    "Invalid",
    'JobSet.jobset.x-k8s.io "X_" is invalid: metadata.name: Invalid value: "X_": a DNS name',
    causes=[{"reason": "FieldValueInvalid", "message": 'Invalid value: "X_": a DNS name', "field": "metadata.name"}],
)
ENDING = status(
    403,
    "Forbidden",
    'jobsets.jobset.x-k8s.io "demo-1" is forbidden: unable to create new content in namespace evenkeel because it is '
    "being terminated",
    causes=[{"reason": "NamespaceTerminating", "message": "namespace evenkeel is being terminated"}],
)
BEING_DELETED = status(409, "AlreadyExists", 'object is being deleted: jobsets.jobset.x-k8s.io "demo-1" already exists')
NOT_STARTED = status(
    400, "BadRequest", 'container "learner" in pod "demo-1-learner-0-0-x" is waiting to start: ContainerCreating'
)


def exists(plural: str, name: str) -> dict[str, Any]:
    return status(409, "AlreadyExists", f'{plural} "{name}" already exists', name=name, kind=plural)


def absent(plural: str, name: str) -> dict[str, Any]:
    return status(404, "NotFound", f'{plural} "{name}" not found', name=name, kind=plural)


def other_uid(wanted: str, found: str) -> dict[str, Any]:
    text = f"the UID in the precondition ({wanted}) does not match the UID in record ({found})"
    return status(409, "Conflict", f"Operation cannot be fulfilled: Precondition failed: {text}")


def forbidden(verb: str, plural: str, group: str, namespace: str) -> dict[str, Any]:
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    who = f'User "{USER}" cannot {verb} resource "{plural}" in API group "{group}" {where}'
    return status(403, "Forbidden", f"{plural}.{group} is forbidden: {who}".replace(". is", " is"), kind=plural)
