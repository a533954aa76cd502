"""Failures for a person: what is wrong, and the command that fixes it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from components.errors import CorrectableError, InputError
from components.launch.kubernetes.api.errors import Exists, Failure, Refused, Unreachable
from components.launch.kubernetes.api.resources import JOBSETS, Call
from components.launch.kubernetes.names import GROUP, VERSION
from components.launch.kubernetes.permissions import KUEUE, Permission

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
POLICIES = "ask the administrators of the cluster: the message above is from their policies"
FIELDS = "change the setting that the field comes from; evenkeel launch --dry-run shows the whole object"


def explain(
    failure: Failure, call: Call | None, server: str, account: str, versions: Sequence[str] = ()
) -> CorrectableError:
    """What to raise.

    Args:
        versions: those of the API group that are served, where the server did not know the path.
    """
    where = f"{call.what} in namespace {call.namespace} of {server}" if call and call.resource.namespaced else server
    if failure.status is None:
        what = f"the API server cannot be used: {failure.text}"
        if failure.permanent:
            return InputError(what, where=server, how=NEW_KUBECONFIG)
        return Unreachable(what, where=server, how=AWAY)
    if call is not None and failure.no_such_path:
        return _not_served(call, versions, server)
    action = f"{call.verb} {call.what}" if call else "answer"
    unknown = f"the API server refuses to {action}: {failure.text} (status {failure.status})", None
    known = _of_the_cluster(failure, call, account) or _of_the_object(failure, call)
    what, how = known or unknown
    kind = Exists if failure.exists and known else Unreachable if failure.passing else Refused
    error = kind(what, where=where, how=how)
    if isinstance(error, Refused):
        error.status = failure.status
    return error


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


def _of_the_cluster(failure: Failure, call: Call | None, account: str) -> tuple[str, str] | None:
    """What is wrong and how to fix it, if the cluster does not let us: log-in, namespace, quota, policies, rights."""
    status, text = failure.status, failure.text
    space = call.namespace if call else ""
    if status == 401:
        what = f"the cluster does not accept the credentials of {account}: they have expired, or are not known to it"
        return what, LOGIN
    if status == 403 and "being terminated" in text:
        how = "wait until it is gone and create it again, or use another"
        return f"the namespace is being deleted: {text}", how
    if status == 403 and "exceeded quota" in text:
        look = f"kubectl describe resourcequota{f' -n {space}' if call else ''}"
        return text, f"see what is used: {look}; then request less, or have it raised"
    if ".kb.io" in text and "is invalid:" in text:  # JobSet's webhook only states what is invalid
        return f"{_not_accepted(call)}: {text.partition('is invalid:')[2].strip()}", FIELDS
    if re.search(r"denied (the )?request|violates PodSecurity|ValidatingAdmissionPolicy", text):
        return f"the cluster's policies refuse it: {text}", POLICIES
    if "failed calling webhook" in text:
        how = "the webhook's own pod must run; JobSet's: kubectl -n jobset-system get pods"
        return f"something that checks objects for the cluster does not answer: {text}", how
    if status == 403:
        return _forbidden(text, call, account)
    if status == 404 and failure.details.get("kind") == "namespaces":
        how = f"create it with all that belongs to it: {PLATFORM}; or set launch.kubernetes.namespace"
        return f"there is no namespace {space!r}", how
    return None


def _forbidden(text: str, call: Call | None, account: str) -> tuple[str, str]:
    who = re.search(r'[Uu]ser "([^"]+)"', text)
    name = who[1] if who else account
    if name == "system:anonymous":
        return f"{account} has no credentials, so the cluster treats it as anybody (system:anonymous)", LOGIN
    if call is None:
        return f"{name} may not see which APIs there are: {text}", "kubectl auth can-i get /apis --as " + name
    _, resource, verb = call.permission
    space = f" in namespace {call.namespace}" if call.resource.namespaced else ""
    look = granting(call.permission, call.namespace if call.resource.namespaced else "")
    return f"{name} may not {verb} {resource}{space}", f"{look} --as {name}"


def granting(permission: Permission, namespace: str) -> str:
    """What grants a permission, and the command that checks it; without a namespace in the whole cluster."""
    group, resource, verb = permission
    plain, _, part = resource.partition("/")
    access = f"{verb} {plain}{f'.{group}' if group else ''}{f' --subresource={part}' if part else ''}"
    access += f" -n {namespace}" if namespace else ""
    grant = f"{PLATFORM} grants it to evenkeel-launcher, k8s/components/operators to people"
    return f"{grant}; check: kubectl auth can-i {access}"


def _of_the_object(failure: Failure, call: Call | None) -> tuple[str, str] | None:
    """What is wrong and how to fix it, if it is the object, or the server for a while."""
    status, text = failure.status, failure.text
    if failure.exists and call:
        if "being deleted" in text:
            return f"{call.what} is still being deleted", f"wait until it is gone: {call.look} --watch"
        what = f"{call.what} is there already, and is not what was to be created"
        return what, f"look at it ({call.look}), then delete it"
    if status == 409:
        return f"something else changes {call.what if call else 'it'} all the time: {text}", "try again"
    if status in (400, 422):  # every field with what is wrong in it; the message would repeat the whole object
        causes = [f"{one.get('field') or 'it'}: {one.get('message')}" for one in failure.details.get("causes") or ()]
        listed = "".join(f"\n  - {one}" for one in dict.fromkeys(causes)) or f": {text}"
        return _not_accepted(call) + listed, FIELDS
    if failure.passing:
        what = f"the API server {'is busy' if status == 429 else 'fails'}: {text} (status {status})"
        return what, "try again; if it lasts: kubectl get --raw /readyz"
    return None


def _not_accepted(call: Call | None) -> str:
    return f"the cluster does not accept {call.what if call else 'the request'}"
