"""What a run needs of a cluster: pods by role, what runs in them, and the settings that they get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from components.config import Settings
from components.config.kubernetes import SAMPLING, KubernetesSettings, PodSettings, S3State, VolumeState
from components.config.servers import VllmEngine
from components.config.training import RANKED
from components.errors import InputError
from components.launch.kubernetes.names import (
    HTTP_PORT,
    METRICS_PORT,
    RENDEZVOUS_PORT,
    Role,
    host,
    jobset_name,
    labels,
)
from components.launch.kubernetes.rewriting import for_the_pods, learner_nodes, servers
from components.layout import Layout
from components.processes.vllm_server import PLUGIN, command_line, environment

WORK = "/work"
"""The workspace in pods that share no volume."""
PYTHON = "python"
BEGINNING = timedelta(minutes=10)
"""That a cluster may take until it begins to count: its own word for a run that takes too long comes first."""
USER = 10001
"""The user that pods run as, where no files of other users are shared."""


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
    """Who submits what: the workspace as it is called here, the run's id, digests of its code and its packages, the
    number of the user whose files the pods work on, and where below the workspace its code is."""

    stage: str
    workspace: Path
    run: str
    owner: str
    code: str
    constraints: str
    now: datetime
    user: int = USER
    source: Path = Path()


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run on a cluster. ``workspace`` is its folder inside the pods, ``settings`` are those that they get, and
    ``until`` is when even the last attempt must be over."""

    name: str
    submission: Submission
    how: KubernetesSettings
    settings: Settings
    workspace: PurePosixPath
    roles: tuple[RolePlan, ...]
    labels: Mapping[str, str]
    until: datetime

    def role(self, name: Role) -> RolePlan | None:
        return next((role for role in self.roles if role.name == name), None)

    @property
    def config(self) -> PurePosixPath:
        """The file of the settings, below the workspace."""
        return config_of(self.submission)


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
    nodes = learner_nodes(settings, how) if submission.stage in RANKED else 1
    count = servers(settings) if submission.stage in SAMPLING else 0
    urls = [f"http://{host(name, 'rollout', index)}:{HTTP_PORT}" for index in range(count)]
    roles = [_learner(settings, how, submission, name, nodes)]
    roles += [_rollout(settings, how, workspace, submission.source, count)] if count else []
    return RunPlan(
        name,
        submission,
        how,
        for_the_pods(settings, urls),
        workspace,
        tuple(roles),
        labels(submission.run, submission.owner),
        submission.now.astimezone(UTC)
        + timedelta(seconds=(how.deadline + how.grace) * (how.max_restarts + 1))
        + BEGINNING,
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


def config_of(submission: Submission) -> PurePosixPath:
    """Where the pods find the settings, below the workspace."""
    return PurePosixPath(".state/launch") / f"{submission.stage}.yaml"


def address(run: str, stage: str, how: KubernetesSettings, shared: S3State) -> str:
    """Where the files of a run's stage lie. Equal settings have equal run ids: another namespace may run the same."""
    return f"{shared.uri}/{how.namespace}/{run}/{stage}"


def _learner(settings: Settings, how: KubernetesSettings, submission: Submission, name: str, nodes: int) -> RolePlan:
    """The pods of the stage. One has rank 0 and the loop; where the learner has several ranks, they meet there."""
    command = [PYTHON, "-m", "components.pods.learner", submission.stage, "--config", str(config_of(submission))]
    if isinstance(how.shared, S3State):
        command += ["--state", address(submission.run, submission.stage, how, how.shared)]
    ports = {"metrics": METRICS_PORT}
    if submission.stage in RANKED and settings.learner.has_ranks:
        meeting = f"{host(name, 'learner', 0)}:{RENDEZVOUS_PORT}"
        options = {"--nodes": nodes, "--processes": how.learner.processes, "--rendezvous": meeting}
        command += [str(part) for pair in options.items() for part in pair]
        ports["rendezvous"] = RENDEZVOUS_PORT
    env = {"OMP_NUM_THREADS": str(settings.threads)}
    if submission.source != Path():
        env |= {"PYTHONPATH": str(_workspace(how, submission.workspace) / submission.source)}
    return RolePlan("learner", nodes, how.images.learner, how.learner, tuple(command), ports, env)


def _rollout(
    settings: Settings, how: KubernetesSettings, workspace: PurePosixPath, source: Path, count: int
) -> RolePlan:
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
    code = workspace / source
    env |= {"PYTHONPATH": str(code / PLUGIN) if code == workspace else f"{code / PLUGIN}:{code}"}
    whole = (PYTHON, "-m", "components.pods.server", *command)
    return RolePlan("rollout", count, how.images.rollout, how.rollout, whole, {"http": HTTP_PORT}, env)
