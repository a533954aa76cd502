"""A container that cannot begin: its image, its Secrets and volumes, its command, and what fetches its files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from components.launch.kubernetes.diagnosis.finding import (
    Finding,
    Hints,
    each,
    hint,
    latest,
    logs_command,
    namespace,
    sentence,
    waiting,
    word,
)
from components.launch.kubernetes.observed import Observed, endings, name_of, part, role_of

REASONS = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
DENIED = r"401|403|[Uu]nauthorized|denied|authentication required|no basic auth"
PULL_HINTS: Hints = (
    (DENIED, "name a Secret that may pull it in launch.kubernetes.pull_secrets, or let the nodes pull from there"),
    (r"no match for platform|exec format", "build it for the nodes' architecture"),
    (
        r"no such host|timeout|refused|unreachable|EOF|TLS|x509",
        "the nodes cannot reach the registry: ask their administrators",
    ),
    (r"toomanyrequests|429", "the registry limits its requests: wait, or use a mirror"),
    (r"no space left", "the node's disk is full: kubectl describe node"),
    (r"not found|manifest unknown|no such", "correct the name and the digest in {setting}: was it pushed?"),
)
CONFIGURATION = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError"}
NEVER_RAN = {"StartError", "ContainerCannotRun"}
"""Why a container has ended whose command could not be begun."""
PREPARING = ("ContainerCreating", "PodInitializing", "")
MOUNTS = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
CREATE = "kubectl -n {{space}} get {}s: create it, or correct launch.kubernetes.secrets"
SECRET_MISSING = r'secret "[^"]+" not found', CREATE.format("secret")
START_HINTS: Hints = (
    SECRET_MISSING,
    (r'configmap "[^"]+" not found', CREATE.format("configmap")),
    (r"find key", "kubectl -n {space} get secrets: that Secret lacks the entry"),
    (r"runAsNonRoot|non-root", "use an image whose user has a number other than 0"),
    (
        r"executable file not found|no such file",
        "the image lacks the command: build it from k8s/images, or correct launch.kubernetes.images",
    ),
)
MOUNT_HINTS: Hints = (
    (r"Multi-Attach", "the volume may be on one node only: launch.kubernetes.shared.claim must be ReadWriteMany"),
    SECRET_MISSING,
)


def images(observed: Observed) -> Iterator[Finding]:
    failures = latest(observed, "Failed", about_what="pull")
    for _, pod in each(observed):
        for container, reason, message in waiting(pod):
            if reason not in REASONS:
                continue
            # The back-off says that it waits, and the events say for what.
            why = re.sub(r'^Back-off pulling image "[^"]*"(: ErrImagePull: )?', "", message)
            why = why or failures.get(name_of(pod)) or message
            image = "learner" if name_of(container) == "fetch" else role_of(pod) or "learner"
            setting = f"launch.kubernetes.images.{image}"
            how = hint(PULL_HINTS, why, "correct {setting}, and see that it was pushed", setting=setting)
            yield Finding(f"the image of {word(pod)} cannot be pulled ({reason}): {why}", f"pod {name_of(pod)}", how)


def configuration(observed: Observed) -> Iterator[Finding]:
    """A Secret that is missing, a user that may not be, a command that is not there."""
    for _, pod in each(observed):
        found = [(reason, message) for _, reason, message in waiting(pod) if reason in CONFIGURATION]
        for container in part(pod, "status").get("containerStatuses") or ():
            ended = endings(container)[:1]
            found += [(one["reason"], sentence(one.get("message"))) for one in ended if one.get("reason") in NEVER_RAN]
        for reason, message in found:
            what = f"the container of {word(pod)} cannot begin ({reason}): {message}"
            how = hint(START_HINTS, message, "look at the pod: kubectl describe pod", space=namespace(pod))
            yield Finding(what, f"pod {name_of(pod)}", how)


def volumes(observed: Observed) -> Iterator[Finding]:
    """What cannot be mounted, as long as the pod waits for it."""
    messages = latest(observed, *MOUNTS)
    otherwise = "kubectl -n {space} get pvc,pv: correct launch.kubernetes.shared, or fix the volume"
    for _, pod in each(observed):
        message = messages.get(name_of(pod))
        if message is not None and any(why in PREPARING for _, why, _ in waiting(pod)):
            how = hint(MOUNT_HINTS, message, otherwise, space=namespace(pod))
            yield Finding(f"a volume of {word(pod)} cannot be mounted: {message}", f"pod {name_of(pod)}", how)


def initialisation(observed: Observed) -> Iterator[Finding]:
    """What fetches the run's files failed."""
    for _, pod in each(observed):
        for container in part(pod, "status").get("initContainerStatuses") or ():
            for one in endings(container)[:1]:
                if one.get("exitCode") and one.get("reason") not in ("OOMKilled", *NEVER_RAN):
                    said = sentence(one.get("message"))
                    what = f"{name_of(container)} of {word(pod)} ended with exit code {one['exitCode']}"
                    how = f"{logs_command(pod, name_of(container))}; it reads launch.kubernetes.shared"
                    yield Finding(what + (f": {said}" if said else ""), f"pod {name_of(pod)}", how)
