"""An image that cannot be pulled."""

from __future__ import annotations

import re
from collections.abc import Iterator

from components.launch.kubernetes.diagnosis.finding import Finding, each, sentence, waiting, word
from components.launch.kubernetes.observed import Object, Observed, about, name_of, role_of

REASONS = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
DENIED = r"401|403|[Uu]nauthorized|denied|authentication required|no basic auth"
HINTS: tuple[tuple[str, str], ...] = (
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


def images(observed: Observed) -> Iterator[Finding]:
    failures = _last_failures(observed)
    for _, pod in each(observed):
        for container, reason, message in waiting(pod):
            if reason not in REASONS:
                continue
            # The back-off says that it waits, and the events say for what.
            why = re.sub(r'^Back-off pulling image "[^"]*"(: ErrImagePull: )?', "", message)
            why = why or failures.get(name_of(pod)) or message
            setting = "launch.kubernetes.images." + (_image_of(pod, container))
            hints = [hint for pattern, hint in HINTS if re.search(pattern, why)]
            how = (hints or ["correct {setting}, and see that it was pushed"])[0].format(setting=setting)
            yield Finding(f"the image of {word(pod)} cannot be pulled ({reason}): {why}", f"pod {name_of(pod)}", how)


def _image_of(pod: Object, container: Object) -> str:
    """The entry of ``launch.kubernetes.images``."""
    return "learner" if container.get("name") == "fetch" else role_of(pod) or "learner"


def _last_failures(observed: Observed) -> dict[str, str]:
    """What was last said of every pod's pulling, by the pod's name."""
    failed = [event for event in observed.events if event.get("reason") == "Failed"]
    return {about(event): sentence(event["message"]) for event in failed if "pull" in str(event.get("message"))}
