"""A run on Kubernetes: `launch.kubernetes`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from components.config.base import Section
from components.config.quantities import BYTES, CPU, size
from components.config.registry import endpoint_problems

NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
"""A DNS label: what namespaces, claims, secrets and queues are called here."""
KEY = r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"
VALUE = r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$"
IMAGE = r"^[a-z0-9][a-z0-9._:/-]*@sha256:[0-9a-f]{64}$"
ClusterStage = Literal["sft", "triage", "train", "evaluate"]
SAMPLING: tuple[ClusterStage, ...] = ("triage", "train", "evaluate")
"""Of these, those that need rollout servers."""
Name = Annotated[str, Field(pattern=NAME)]
Label = Annotated[str, Field(pattern=VALUE)]
Key = Annotated[str, Field(pattern=KEY)]


def _written(value: object) -> object:
    """A plain number as the text that it is: Kubernetes takes both, and YAML makes a number of ``cpu: 2``."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Quantity = Annotated[str, BeforeValidator(_written)]


class Toleration(Section):
    """A taint of nodes that pods may be put on all the same."""

    key: Key = Field(description="Key of the taint.")
    value: Label | None = Field(None, description="None: any.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(None, description="None: all.")


class PodSettings(Section):
    """What one pod of a role gets. Its request is also its limit, so that no neighbour can take it away."""

    cpu: Quantity = Field("1", pattern=CPU, description="Cores, such as 2, 0.5 or 500m.")
    memory: Quantity = Field("4Gi", pattern=BYTES, description="Bytes of memory, such as 512Mi or 64Gi.")
    disk: Quantity = Field(
        "4Gi", pattern=BYTES, description="Of the node: /tmp, logs, and with shared.kind s3 its files."
    )
    shm: Quantity = Field("256Mi", pattern=BYTES, description="/dev/shm, which counts as memory; NCCL and vLLM use it.")
    gpus: int = Field(0, ge=0, le=16, description="GPUs (nvidia.com/gpu).")
    node_selector: dict[Key, Label] = Field(default_factory=dict, description="Labels that a node must have.")
    tolerations: tuple[Toleration, ...] = ()
    priority_class: Name | None = Field(None, description="A PriorityClass of the cluster.")
    runtime_class: Name | None = Field(None, description="A RuntimeClass of the cluster, such as nvidia.")
    topology: Key | None = Field(
        None,
        description="A label of nodes, such as topology.kubernetes.io/zone: the pods of this role are put where all "
        "have the same value of it.",
    )

    def conflicts(self) -> Iterator[str]:
        if size(self.shm) >= size(self.memory):
            yield f"shm ({self.shm}) counts as memory: it must be less than memory ({self.memory})"


class LearnerPods(PodSettings):
    """Pods of the stage: the learner with the loop in its rank 0. Stages without a learner have one of them."""

    processes: int = Field(1, ge=1, le=16, description="Ranks in a pod; with gpus one for each.")

    def conflicts(self) -> Iterator[str]:
        yield from super().conflicts()
        if self.gpus and self.processes != self.gpus:
            yield f"processes ({self.processes}) must be gpus ({self.gpus}): a rank has one GPU"


class VolumeState(Section):
    """A claim (ReadWriteMany) that every pod mounts, and whoever submits the run as well, under the same path."""

    kind: Literal["volume"]
    claim: Name = Field(description="Name of the PersistentVolumeClaim, in the namespace of the run.")
    path: str = Field("/shared", description="Where it is mounted; the run's workspace lies below it.")

    @field_validator("path")
    @classmethod
    def _is_absolute(cls, path: str) -> str:
        if not path.startswith("/") or not path.strip("/.") or ".." in PurePosixPath(path).parts:
            raise ValueError(f"{path!r} must be the absolute path of a folder below /")
        if path.rstrip("/") in ("/tmp", "/work") or PurePosixPath(path).parts[1] in ("dev", "proc", "sys"):
            raise ValueError(f"{path} is a folder of the pods' own; choose another, such as /shared")
        return str(PurePosixPath(path))


class S3State(Section):
    """A prefix in a bucket. Credentials come from the environment or the service account, never from settings."""

    kind: Literal["s3"]
    uri: str = Field(
        pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9][A-Za-z0-9._-]*)*$",
        description="s3://bucket/prefix; each run has a prefix of its own below it.",
    )
    endpoint_url: str | None = Field(None, description="The server, http(s)://host:port; None: AWS.")
    region: str | None = Field(
        None, pattern=r"^[a-z0-9-]+$", description="The bucket's region; None: boto3's own configuration."
    )

    def conflicts(self) -> Iterator[str]:
        if self.endpoint_url is not None:
            yield from endpoint_problems(self.endpoint_url)


class Images(Section):
    """Images by digest: a tag may mean something else when a pod is replaced."""

    learner: str = Field(pattern=IMAGE, description="With the packages of constraints.txt.")
    rollout: str | None = Field(None, pattern=IMAGE, description="With vLLM; needed where servers sample.")

    @field_validator("learner", "rollout")
    @classmethod
    def _no_latest(cls, image: str | None) -> str | None:
        if image is not None and re.search(r":latest@", image):
            raise ValueError(f"{image}: the tag latest says nothing; leave it out, the digest decides")
        return image


class Prices(Section):
    """What an hour costs, in whatever currency: only for the table of `evenkeel launch --dry-run`."""

    cpu: float = Field(0.0, ge=0, description="A core.")
    memory: float = Field(0.0, ge=0, description="A GiB of memory.")
    gpu: float = Field(0.0, ge=0, description="A GPU.")
    currency: str = Field(
        "USD", pattern=r"^[A-Z]{3}$", description="Code of the currency (ISO 4217), printed with amounts."
    )


class KubernetesSettings(Section):
    """One JobSet per stage of a run: the learner with the loop, and rollout servers."""

    context: str | None = Field(None, description="Of the kubeconfig. None: the present one, or the pod's own account.")
    namespace: Name = Field("evenkeel", description="Namespace of all that belongs to the run.")
    owner: Label | None = Field(
        None,
        min_length=1,
        description="Whom the run belongs to, as a label. None: who submits it (EVENKEEL_RUN_OWNER).",
    )
    stages: tuple[ClusterStage, ...] = Field(
        ("train",),
        min_length=1,
        description="Stages that run on the cluster, each as a JobSet: sft and train have as many learner pods as "
        "their ranks need, triage and evaluate have one; triage, train and evaluate have servers as well. "
        "The others stay where the command runs.",
    )
    images: Images
    pull_secrets: tuple[Name, ...] = Field((), description="Secrets of the namespace that pull the images.")
    secrets: tuple[Name, ...] = Field(
        (), description="Secrets of the namespace whose entries are environment variables of the learner, such as S3's."
    )
    service_account: Name = Field("evenkeel-run", description="Of all pods; they get no token of it.")
    user: int | None = Field(
        None,
        ge=1,
        le=2**31 - 1,
        description="Number of the user that pods run as; never root. None: with shared.kind volume whoever owns the "
        "run's folder, so that both sides may write what the other wrote; else 10001.",
    )
    shared: VolumeState | S3State = Field(
        discriminator="kind", description="Where the run's files are for pods and for whoever submits it."
    )
    learner: LearnerPods = LearnerPods()
    rollout: PodSettings = PodSettings()
    queue: Name | None = Field(None, description="Kueue's LocalQueue that admits the run.")
    deadline: int = Field(
        86_400, ge=60, le=10**8, description="Seconds that one attempt may take; a restart counts from zero."
    )
    ttl: int = Field(
        86_400, ge=0, le=2**31 - 1, description="Seconds that an ended run's objects stay to be looked at."
    )
    max_restarts: int = Field(3, ge=0, le=100, description="For what is neither a disruption nor bad input.")
    replacements: int = Field(6, ge=0, le=100, description="Failed rollout pods in one attempt that are replaced.")
    grace: int = Field(300, ge=30, le=3600, description="Seconds between SIGTERM and SIGKILL: a checkpoint's time.")
    prices: Prices = Prices()
