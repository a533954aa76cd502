"""Failures for a person: what is wrong, and the command that fixes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from components.errors import CorrectableError, InputError
from components.launch.kubernetes.api.errors import Exists, Failure, Refused, Unreachable
from components.launch.kubernetes.api.resources import JOBSETS, Call
from components.launch.kubernetes.names import GROUP, VERSION
from components.launch.kubernetes.permissions import KUEUE

INSTALL = (
    "kubectl apply --server-side -f "
    "https://github.com/kubernetes-sigs/jobset/releases/download/v0.12.0/manifests.yaml (JobSet 0.12)"
)
PLATFORM = "kubectl apply --server-side -k k8s/overlays/cpu (or gpu)"
LOGIN = (
    "log in again, as you did for kubectl (aws eks update-kubeconfig --name CLUSTER, gcloud container clusters "
    "get-credentials CLUSTER, az aks get-credentials ...), then: kubectl auth whoami"
)
AWAY = "does kubectl cluster-info answer? is this machine in the cluster's network (VPN)?"
NEW_KUBECONFIG = (
    "get a new kubeconfig: its server and its certificate-authority do not belong together; try kubectl cluster-info"
)
FIELDS = "change the setting that the field comes from; evenkeel launch --dry-run shows the whole object"
Word = Callable[[Failure, Call | None, str], tuple[str, str] | None]
"""What is wrong and how to fix it, if this is what a failure is about. The last argument is the account."""


def explain(
    failure: Failure, call: Call | None, server: str, account: str, versions: Sequence[str] = ()
) -> CorrectableError:
    """What to raise.

    Args:
        versions: those of the API group that are served, where the server did not know the path.
    """
    where = _where(call, server)
    if failure.status is None:
        what = f"the API server cannot be used: {failure.text}"
        return (
            InputError(what, where=server, how=NEW_KUBECONFIG)
            if failure.permanent
            else Unreachable(what, where=server, how=AWAY)
        )
    if call is not None and failure.no_such_path:
        return _not_served(call, versions, server)
    for word in WORDS:
        if found := word(failure, call, account):
            kind = Exists if failure.exists else Unreachable if failure.passing else Refused
            error = kind(found[0], where=where, how=found[1])
            if isinstance(error, Refused):
                error.status = failure.status
            return error
    error = Refused(f"the API server refuses to {_action(call)}: {failure.text} (status {failure.status})", where=where)
    error.status = failure.status
    return error


def _where(call: Call | None, server: str) -> str:
    if call is None:
        return server
    return f"{call.what} in namespace {call.namespace} of {server}" if call.resource.namespaced else server


def _action(call: Call | None) -> str:
    return f"{call.verb} {call.what}" if call else "answer"


def _not_served(call: Call, versions: Sequence[str], server: str) -> CorrectableError:
    resource = call.resource
    if resource.group == KUEUE:
        how = "install Kueue, or leave launch.kubernetes.queue out"
        return Refused("Kueue is not installed, or serves another version of its API", where=server, how=how)
    if resource != JOBSETS:
        what = f"the API server does not serve {resource.plural} of {resource.group or 'core'}/{resource.version}"
        return Refused(what, where=server, how="use a cluster of Kubernetes 1.34 to 1.37")
    if not versions:
        return Refused(f"JobSet is not installed: nothing serves {GROUP}", where=server, how=f"install it: {INSTALL}")
    what = f"the cluster serves JobSet as {', '.join(versions)}, and Evenkeel speaks {VERSION}"
    return Refused(what, where=server, how=f"install a version that serves {VERSION}: {INSTALL}")


def _credentials(failure: Failure, call: Call | None, account: str) -> tuple[str, str] | None:
    if failure.status != 401:
        return None
    return f"the cluster does not accept the credentials of {account}: they have expired, or are not known to it", LOGIN


def _being_ended(failure: Failure, call: Call | None, account: str) -> tuple[str, str] | None:
    if failure.status != 403 or "being terminated" not in failure.text:
        return None
    return (
        f"the namespace is being deleted: {failure.text}",
        "wait until it is gone and create it again, or use another",
    )


def _quota(failure: Failure, call: Call | None, account: str) -> tuple[str, str] | None:
    if failure.status != 403 or "exceeded quota" not in failure.text:
        return None
    space = f" -n {call.namespace}" if call else ""
    return (
        failure.text,
        f"see what is used: kubectl describe resourcequota{space}; then request less, or have it raised",
    )


def _admission(failure: Failure, call: Call | None, account: str) -> tuple[str, str] | None:
    """A policy refused the request; its message is the only reason. JobSet's webhook only states what is invalid."""
    if ".kb.io" in failure.text and "is invalid:" in failure.text:
        what = f"the cluster does not accept {call.what if call else 'the request'}: "
        return what + failure.text.partition("is invalid:")[2].strip(), FIELDS
    if not re.search(r"denied (the )?request|violates PodSecurity|ValidatingAdmissionPolicy", failure.text):
        return None
    return (
        f"the cluster's policies refuse it: {failure.text}",
        "ask the administrators of the cluster: the message above is from their policies",
    )


def _webhook(failure: Failure, call: Call | None, account: str) -> tuple[str, str] | None:
    if "failed calling webhook" not in failure.text:
        return None
    how = "the webhook's own pod must run; JobSet's: kubectl -n jobset-system get pods"
    return f"something that checks objects for the cluster does not answer: {failure.text}", how


def _forbidden(failure: Failure, call: Call | None, account: str) -> tuple[str, str] | None:
    if failure.status != 403:
        return None
    who = re.search(r'[Uu]ser "([^"]+)"', failure.text)
    name = who[1] if who else account
    if name == "system:anonymous":
        return f"{account} has no credentials, so the cluster treats it as anybody (system:anonymous)", LOGIN
    if call is None:
        return f"{name} may not see which APIs there are: {failure.text}", "kubectl auth can-i get /apis --as " + name
    group, resource, verb = call.permission
    plain, _, part = resource.partition("/")
    space = f" in namespace {call.namespace}" if call.resource.namespaced else ""
    full_name = f"{plain}.{group}" if group else plain
    command = f"kubectl auth can-i {verb} {full_name}{f' --subresource={part}' if part else ''}"
    command += f" -n {call.namespace}" if call.resource.namespaced else ""
    grant = f"{PLATFORM} grants it to evenkeel-launcher, k8s/components/operators to people"
    return f"{name} may not {verb} {resource}{space}", f"{grant}; check: {command} --as {name}"


def _no_namespace(failure: Failure, call: Call | None, account: str) -> tuple[str, str] | None:
    if failure.status != 404 or failure.details.get("kind") != "namespaces":
        return None
    space = call.namespace if call else ""
    how = f"create it with all that belongs to it: {PLATFORM}; or set launch.kubernetes.namespace"
    return f"there is no namespace {space!r}", how


def _exists(failure: Failure, call: Call | None, account: str) -> tuple[str, str] | None:
    if not failure.exists or call is None:
        return None
    look = f"kubectl -n {call.namespace} get {call.resource.plural} {call.name}"
    if "being deleted" in failure.text:
        return f"{call.what} is still being deleted", f"wait until it is gone: {look} --watch"
    return f"{call.what} is there already, and is not what was to be created", f"look at it ({look}), then delete it"


def _conflict(failure: Failure, call: Call | None, account: str) -> tuple[str, str] | None:
    if failure.status != 409:
        return None
    return f"something else changes {call.what if call else 'it'} all the time: {failure.text}", "try again"


def _invalid(failure: Failure, call: Call | None, account: str) -> tuple[str, str] | None:
    """Every field with what is wrong in it; the message would repeat the whole object."""
    if failure.status not in (400, 422):
        return None
    causes = [f"{one.get('field') or 'it'}: {one.get('message')}" for one in failure.details.get("causes") or ()]
    what = f"the cluster does not accept {call.what if call else 'the request'}"
    listed = "".join(f"\n  - {one}" for one in dict.fromkeys(causes)) or f": {failure.text}"
    return (
        what + listed,
        "change the setting that the field comes from; evenkeel launch --dry-run shows the whole object",
    )


def _busy(failure: Failure, call: Call | None, account: str) -> tuple[str, str] | None:
    if not failure.passing:
        return None
    what = "is busy" if failure.status == 429 else "fails"
    return (
        f"the API server {what}: {failure.text} (status {failure.status})",
        "try again; if it lasts: kubectl get --raw /readyz",
    )


WORDS: tuple[Word, ...] = (
    _credentials,
    _being_ended,
    _quota,
    _admission,
    _webhook,
    _forbidden,
    _no_namespace,
    _exists,
    _conflict,
    _invalid,
    _busy,
)
"""The first that fits says it."""
