"""A container that cannot begin."""

from __future__ import annotations

import re
from collections.abc import Iterator

from components.launch.kubernetes.diagnosis.finding import (
    Finding,
    each,
    namespace,
    pod_command,
    sentence,
    waiting,
    word,
)
from components.launch.kubernetes.observed import Observed, about, endings, name_of

CONFIGURATION = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError"}
NEVER_RAN = {"StartError", "ContainerCannotRun"}
"""Why a container has ended whose command could not be begun."""
MOUNTS = {"FailedMount", "FailedAttachVolume", "FailedMapVolume"}


def configuration(observed: Observed) -> Iterator[Finding]:
    """A Secret that is missing, a user that may not be, a command that is not there."""
    for _, pod in each(observed):
        found = [(reason, message) for _, reason, message in waiting(pod) if reason in CONFIGURATION]
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            ended = endings(container)[:1]
            found += [(one["reason"], sentence(one.get("message"))) for one in ended if one.get("reason") in NEVER_RAN]
        for reason, message in found:
            what = f"the container of {word(pod)} cannot begin ({reason}): {message}"
            yield Finding(what, f"pod {name_of(pod)}", _how(message, namespace(pod)))


def _how(message: str, space: str) -> str:
    missing = re.search(r'(secret|configmap) "([^"]+)" not found', message)
    if missing:
        return f"kubectl -n {space} get {missing[1]}s: create it, or correct launch.kubernetes.secrets"
    if "find key" in message:
        return f"kubectl -n {space} get secrets: that Secret lacks the entry"
    if "runAsNonRoot" in message or "non-root" in message:
        return "use an image whose user has a number other than 0"
    if re.search(r"executable file not found|no such file", message):
        return "the image lacks the command: build it from k8s/images, or correct launch.kubernetes.images"
    return "look at the pod: kubectl describe pod"


def volumes(observed: Observed) -> Iterator[Finding]:
    """What cannot be mounted, as long as the pod waits for it."""
    begun = {name_of(pod) for _, pod in each(observed) if not _waits(pod)}
    pods = {name_of(pod): pod for _, pod in each(observed)}
    latest = {}
    for event in observed.events:
        name = about(event)
        if event.get("reason") in MOUNTS and name in pods and name not in begun:
            latest[name] = sentence(event.get("message"))
    for name, message in latest.items():
        how = f"kubectl -n {namespace(pods[name])} get pvc,pv: correct launch.kubernetes.shared, or fix the volume"
        if "Multi-Attach" in message:
            how = "the volume may be on one node only: launch.kubernetes.shared.claim must be ReadWriteMany"
        elif re.search(r'secret "[^"]+" not found', message):
            how = _how(message, namespace(pods[name]))
        yield Finding(f"a volume of {word(pods[name])} cannot be mounted: {message}", f"pod {name}", how)


def _waits(pod: dict[str, object]) -> bool:
    return any(reason in ("ContainerCreating", "PodInitializing", "") for _, reason, _ in waiting(pod))


def initialisation(observed: Observed) -> Iterator[Finding]:
    """What fetches the run's files failed."""
    for _, pod in each(observed):
        for container in (pod.get("status") or {}).get("initContainerStatuses") or ():
            ended = endings(container)[:1]
            for one in ended:
                if one.get("exitCode") and one.get("reason") not in ("OOMKilled", *NEVER_RAN):
                    said = sentence(one.get("message"))
                    what = f"{name_of(container)} of {word(pod)} ended with exit code {one['exitCode']}"
                    how = f"{pod_command(pod, 'logs')} -c {name_of(container)}; it reads launch.kubernetes.shared"
                    yield Finding(what + (f": {said}" if said else ""), f"pod {name_of(pod)}", how)
