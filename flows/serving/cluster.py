"""``python -m flows.serving.cluster IMAGE``: the deployments of `prefect.yaml` in the work pool of a cluster, on the
server that ``PREFECT_API_URL`` names, with the orchestrator image that their flow runs use. Doing it again changes
nothing but what changed. The worker makes the pool, see k8s/README.md.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.exceptions import ObjectNotFound

from components.config.kubernetes import IMAGE
from components.errors import EvenkeelError, InputError
from flows.host.git import project_root
from flows.serving.register import Entry, WorkPool, bring_up_to_date, read_entries

POOL = "kubernetes"
"""As in k8s/prefect/worker.yaml."""
NIGHTLY = {"nightly": "evenkeel-nightly", "janitor": "evenkeel-nightly"}
"""Background deployments, and their priority class (k8s/base/priorities.yaml)."""


def register(project: Path, image: str) -> None:
    """Bring the server up to date with the project.

    Raises:
        InputError: the image has no digest, there is no pool, or `prefect.yaml` is not as it must be.
    """
    if not re.fullmatch(IMAGE, image):
        what = f"{image!r} names no image by its digest, and a tag may mean something else tomorrow"
        raise InputError(what, how="NAME@sha256:..., as the push of the orchestrator image printed it")
    entries = [(elsewhere(entry, image), entry.load()) for entry in read_entries(project)]
    with get_client(sync_client=True) as client:
        _find_pool(client)
        bring_up_to_date(client, entries, POOL)


def elsewhere(entry: Entry, image: str) -> Entry:
    """The same deployment with its flow runs in pods."""
    more = {"priority_class": NIGHTLY[entry.name]} if entry.name in NIGHTLY else {}
    variables = {**entry.work_pool.job_variables, "image": image, **more}
    return entry.model_copy(update={"work_pool": WorkPool(name=POOL, job_variables=variables)})


def _find_pool(client: SyncPrefectClient) -> None:
    try:
        pool = client.read_work_pool(POOL)
    except ObjectNotFound as error:
        how = "start the worker, which makes it: see k8s/README.md"
        where = os.environ.get("PREFECT_API_URL")
        raise InputError(f"the server has no work pool {POOL}", where=where, how=how) from error
    if pool.type != POOL:
        how = "delete it, or name another in k8s/prefect/worker.yaml and flows/serving/cluster.py"
        raise InputError(f"it is of type {pool.type}, not {POOL}", where=f"work pool {POOL}", how=how)


def main(arguments: list[str]) -> int:
    try:
        if len(arguments) != 1:
            how = "python -m flows.serving.cluster NAME@sha256:..."
            raise InputError("one image is needed, that of the flow runs", how=how)
        register(project_root(Path.cwd()), arguments[0])
    except EvenkeelError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
