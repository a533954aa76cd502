"""A run of so many pods, looked at: `status` and the diagnosis of what was observed, and the listing page by page.

Made of what a real cluster showed (`tests/kubernetes/observed`), one pod over and over with its events.
"""

from __future__ import annotations

import copy
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.growth.curve import Cost, Curve
from tests.benchmarks.growth.measures import least_ms
from tests.benchmarks.section import Row

if TYPE_CHECKING:
    from components.launch.kubernetes.api import Cluster

RUN = "demo-1"
BACK_OFF = "Back-off pulling image"
NAME, UID = "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/jobset-uid"


def crowd(scene: str, role: str, size: int) -> dict[str, Any]:
    """A scene with so many pods of a role instead of its first, and the events of each."""
    from components.launch.kubernetes.observed import about, name_of
    from tests.kubernetes.scenes import content, of_role

    found = content(scene)
    first = of_role(found, "pods", role)
    own = [event for event in found["events"] if about(event) == name_of(first)]
    found["pods"] = [_called(first, number) for number in range(size)]
    found["events"] = [_of(event, name_of(pod)) for pod in found["pods"] for event in own]
    return found


def _called(pod: dict[str, Any], number: int) -> dict[str, Any]:
    made = copy.deepcopy(pod)
    made["metadata"]["name"] = f"{made['metadata']['name']}-{number}"
    return made


def _of(event: dict[str, Any], name: str) -> dict[str, Any]:
    return {**event, "involvedObject": {**event["involvedObject"], "name": name}}


def without_cause(found: dict[str, Any]) -> dict[str, Any]:
    """Of images that cannot be pulled, as a node says it later: that it waits, and no more; events say why."""
    for pod in found["pods"]:
        for container in pod["status"]["containerStatuses"]:
            container["state"]["waiting"]["message"] = f'{BACK_OFF} "localhost:1/nope"'
    return found


def measure(size: int, folder: Path) -> Row:
    from components.launch.kubernetes.observed import gather
    from components.launch.kubernetes.status import status_of
    from tests.kubernetes.scenes import NAMES, observed

    well = observed(crowd("image-not-there", "learner", size))
    waiting = observed(without_cause(crowd("image-not-there", "learner", size)))
    others = [observed(crowd(name, "learner", size)) for name in NAMES if _has_learner(name)]
    row = {
        "well_ms": least_ms(lambda: status_of(well), repeats=3),
        "image_ms": least_ms(lambda: status_of(waiting), repeats=3),
        "worst_ms": max(least_ms(lambda one=one: status_of(one), repeats=2) for one in others),  # type: ignore[misc]
    }
    with listing(size) as cluster:
        gather(cluster, RUN)
        began = time.thread_time()
        found = gather(cluster, RUN)
        row["listing_ms"] = 1e3 * (time.thread_time() - began)
    if len(found.pods) != size:
        raise ValueError(f"{len(found.pods)} pods listed of {size}")
    return row


@contextmanager
def listing(size: int) -> Iterator[Cluster]:
    """A client, and a server in a thread of its own with so many pods and an event of each."""
    from components.launch.kubernetes.api import Cluster
    from tests.kubernetes.fake_api import FakeApi, kubeconfig
    from tests.kubernetes.objects import jobset

    pod = crowd("image-not-there", "learner", 1)["pods"][0]
    with FakeApi().running() as api, tempfile.TemporaryDirectory() as folder:
        uid = api.put("jobsets", jobset(RUN))["metadata"]["uid"]
        for number in range(size):
            made = _called(pod, number)
            made["metadata"] |= {"name": f"{RUN}-learner-0-{number}"}
            made["metadata"]["labels"] |= {NAME: RUN, UID: uid}
            api.put("pods", made)
            event = {"reason": "Failed", "type": "Warning", "message": "Error: ErrImagePull"}
            about = {"name": made["metadata"]["name"]}
            latest = "2100-01-01T00:00:00Z"
            metadata = {"name": f"{about['name']}.1"}
            api.put("events", {**event, "metadata": metadata, "involvedObject": about, "lastTimestamp": latest})
        os.environ["KUBECONFIG"] = str(kubeconfig(Path(folder) / "kubeconfig", api.url))
        yield Cluster.connect("evenkeel")


CURVE = Curve(
    "pods", "pods observed", (1, 10, 100, 1000), 10, measure,
    (
        Cost("well_ms", "status, all of them well"),
        Cost("image_ms", "status, an image that none can pull"),
        Cost("worst_ms", "status, the slowest of all other scenes"),
        Cost("listing_ms", "listed in pages, the client's thread"),
    ),
)  # fmt: skip


def _has_learner(name: str) -> bool:
    from components.launch.kubernetes.observed import role_of
    from tests.kubernetes.scenes import content

    return any(role_of(pod) == "learner" for pod in content(name)["pods"])
