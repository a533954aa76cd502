"""What a run needs of a cluster: pods by role, what runs in them, and what the driver is told of the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from components.config import Settings
from components.config.kubernetes import SAMPLING, KubernetesSettings, PodSettings, S3State, VolumeState
from components.config.servers import VllmEngine
from components.errors import InputError
from components.launch.kubernetes.names import (
    HTTP_PORT,
    LEARNER_PORT,
    MAIN,
    METRICS_PORT,
    RENDEZVOUS_PORT,
    Role,
    host,
    jobset_name,
    labels,
    secret_name,
)
from components.launch.kubernetes.rewriting import for_the_driver, learner_nodes, servers
from components.layout import Layout
from components.processes.vllm_server import PLUGIN, command_line, environment

WORK = "/work"
"""The workspace in pods that share no volume."""
PYTHON = "python"
BEGINNING = timedelta(minutes=10)
"""That a cluster may take until it begins to count: its own word for a run that takes too long comes first."""
USER = 10001
"""Whom pods run as, where nobody else's files are shared."""


@dataclass(frozen=True, slots=True)
class RolePlan:
    """The pods of one role. ``env`` is what only they need."""

    name: Role
    count: int
    image: str
    pods: PodSettings
    command: tuple[str, ...]
    ports: Mapping[str, int]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Submission:
    """Who submits what: the workspace as it is called here, the run's id, digests of its code and its packages, and the
    number of the user whose files the pods work on."""

    stage: str
    workspace: Path
    run: str
    owner: str
    code: str
    constraints: str
    now: datetime
    user: int = USER


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run on a cluster. ``workspace`` is its folder inside the pods, ``settings`` are those of the driver there,
    ``until`` is when even the last attempt must be over, and ``secret`` is where driver and learner find their key."""

    name: str
    submission: Submission
    how: KubernetesSettings
    settings: Settings
    workspace: PurePosixPath
    roles: tuple[RolePlan, ...]
    labels: Mapping[str, str]
    until: datetime
    secret: str

    def role(self, name: Role) -> RolePlan | None:
        return next((role for role in self.roles if role.name == name), None)

    @property
    def has_learner(self) -> bool:
        return self.role("learner") is not None

    @property
    def config(self) -> PurePosixPath:
        """The driver's settings, below the workspace."""
        return PurePosixPath(".state/launch") / f"{self.submission.stage}.yaml"


def plan_run(settings: Settings, submission: Submission) -> RunPlan:
    """The plan of a stage with ``launch.kind`` kubernetes.

    Raises:
        InputError: the workspace is not where the pods could see it, or a name cannot be one.
    """
    how = settings.launch.kubernetes
    if how is None:
        raise InputError("launch.kubernetes is not set", how="see configs/kubernetes.yaml")
    name = jobset_name(submission.run, submission.stage)
    workspace = _workspace(how, submission.workspace)
    nodes = learner_nodes(settings, how) if submission.stage == MAIN else 0
    count = servers(settings) if submission.stage in SAMPLING else 0
    urls = [f"http://{host(name, 'rollout', index)}:{HTTP_PORT}" for index in range(count)]
    ranks = f"{host(name, 'learner', 0)}:{LEARNER_PORT}" if nodes else None
    roles = [_driver(how, submission)]
    roles += [_learner(how, name, nodes, settings.threads)] if nodes else []
    roles += [_rollout(settings, how, workspace, count)] if count else []
    return RunPlan(
        name,
        submission,
        how,
        for_the_driver(settings, how, urls, ranks),
        workspace,
        tuple(roles),
        labels(submission.run, submission.owner),
        submission.now.astimezone(UTC)
        + timedelta(seconds=(how.deadline + how.grace) * (how.max_restarts + 1))
        + BEGINNING,
        secret_name(name, submission.now),
    )


def _workspace(how: KubernetesSettings, here: Path) -> PurePosixPath:
    if not isinstance(how.shared, VolumeState):
        return PurePosixPath(WORK)
    workspace = PurePosixPath(here.absolute())
    if not workspace.is_relative_to(how.shared.path):
        raise InputError(
            f"the run's folder {workspace} is not below {how.shared.path}, so pods that mount the claim "
            f"{how.shared.claim} there cannot see it",
            where="launch.kubernetes.shared",
            how=f"work in a folder below {how.shared.path}, where the claim is mounted, or set shared.kind s3",
        )
    return workspace


def address(submission: Submission, shared: S3State) -> str:
    """Where the files of a run's stage lie."""
    return f"{shared.uri}/{submission.run}/{submission.stage}"


def _driver(how: KubernetesSettings, submission: Submission) -> RolePlan:
    config = PurePosixPath(".state/launch") / f"{submission.stage}.yaml"
    command: tuple[str, ...] = (PYTHON, "-m", "components.pods.driver", submission.stage, "--config", str(config))
    if isinstance(how.shared, S3State):
        command += ("--state", address(submission, how.shared))
    return RolePlan("driver", 1, how.images.driver, how.driver, command, {"metrics": METRICS_PORT})


def _learner(how: KubernetesSettings, name: str, nodes: int, threads: int) -> RolePlan:
    meeting = f"{host(name, 'learner', 0)}:{RENDEZVOUS_PORT}"
    options = {"--nodes": nodes, "--processes": how.learner.processes, "--rendezvous": meeting}
    command = (PYTHON, "-m", "components.pods.learner", *(str(part) for pair in options.items() for part in pair))
    ports = {"learner": LEARNER_PORT, "rendezvous": RENDEZVOUS_PORT}
    env = {"EVENKEEL_LEARNER_LISTEN": f"0.0.0.0:{LEARNER_PORT}", "OMP_NUM_THREADS": str(threads)}
    return RolePlan("learner", nodes, how.images.learner or how.images.driver, how.learner, command, ports, env)


def _rollout(settings: Settings, how: KubernetesSettings, workspace: PurePosixPath, count: int) -> RolePlan:
    engine = settings.rollout.engine
    assert isinstance(engine, VllmEngine) and how.images.rollout is not None  # `combinations.cluster` has seen to it
    dtype = settings.policy.dtype if engine.dtype == "policy" else engine.dtype
    model = workspace / Layout().sft_checkpoint
    command = command_line(
        PYTHON,
        engine,
        model,
        dtype,
        host="0.0.0.0",
        port=HTTP_PORT,
        served="evenkeel",
        gpu=how.rollout.gpus > 0,
    )
    env = environment(engine, str(settings.threads), gpu=how.rollout.gpus > 0)
    env |= {"PYTHONPATH": str(workspace / PLUGIN)}
    whole = (PYTHON, "-m", "components.pods.server", *command)
    return RolePlan("rollout", count, how.images.rollout, how.rollout, whole, {"http": HTTP_PORT}, env)
