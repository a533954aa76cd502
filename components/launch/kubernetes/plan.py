"""What a run needs of a cluster: pods by role, what runs in them, and the settings that they get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from components.config import Settings
from components.config.kubernetes import SAMPLING, KubernetesSettings, PodSettings, S3State, VolumeState
from components.config.servers import STARTED, VllmEngine
from components.config.training import RANKED
from components.errors import InputError
from components.launch.kubernetes.names import (
    GPU,
    HTTP_PORT,
    METRICS_PORT,
    RENDEZVOUS_PORT,
    Role,
    host,
    jobset_name,
    labels,
)
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

    @property
    def config(self) -> PurePosixPath:
        """Where the pods find the settings, below the workspace."""
        return PurePosixPath(".state/launch") / f"{self.stage}.yaml"


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


def plan_run(settings: Settings, submission: Submission) -> RunPlan:
    """The plan of a stage with ``launch.kind`` kubernetes.

    Raises:
        InputError: the workspace is not where the pods could see it, or a name cannot be one.
    """
    how = settings.launch.kubernetes
    if how is None:
        raise InputError("launch.kubernetes is not set", how="see configs/kubernetes.yaml")
    name, engine = jobset_name(submission.run, submission.stage), settings.rollout.engine
    workspace = _workspace(how, submission.workspace)
    # Where the stage samples by itself, or servers are up already, the run starts none.
    count = engine.processes if submission.stage in SAMPLING and isinstance(engine, VllmEngine) else 0
    urls = [f"http://{host(name, 'rollout', index)}:{HTTP_PORT}" for index in range(count)]
    roles = [_learner(settings, how, submission, name, workspace)]
    roles += [_rollout(settings, how, workspace, submission.source, count)] if count else []
    attempts = timedelta(seconds=(how.deadline + how.grace) * (how.max_restarts + 1))
    return RunPlan(
        name,
        submission,
        how,
        _for_the_pods(settings, urls),
        workspace,
        tuple(roles),
        labels(submission.run, submission.owner),
        submission.now.astimezone(UTC) + attempts + BEGINNING,
    )


def requests(pods: PodSettings) -> dict[str, str]:
    """What one pod of a role is given, by the name of the resource."""
    found = {"cpu": pods.cpu, "memory": pods.memory, "ephemeral-storage": pods.disk}
    return found | ({GPU: str(pods.gpus)} if pods.gpus else {})


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


def address(run: str, stage: str, how: KubernetesSettings, shared: S3State) -> str:
    """Where the files of a run's stage lie. Equal settings have equal run ids: another namespace may run the same."""
    return f"{shared.uri}/{how.namespace}/{run}/{stage}"


def _learner(
    settings: Settings, how: KubernetesSettings, submission: Submission, name: str, workspace: PurePosixPath
) -> RolePlan:
    """The pods of the stage. One has rank 0 and the loop; where the learner has several ranks, they meet there."""
    command = [PYTHON, "-m", "components.pods.learner", submission.stage, "--config", str(submission.config)]
    if isinstance(how.shared, S3State):
        command += ["--state", address(submission.run, submission.stage, how, how.shared)]
    nodes, ports = 1, {"metrics": METRICS_PORT}
    if submission.stage in RANKED and settings.learner.has_ranks:
        nodes = settings.learner.ranks.processes // how.learner.processes
        meeting = f"{host(name, 'learner', 0)}:{RENDEZVOUS_PORT}"
        command += ["--nodes", str(nodes), "--processes", str(how.learner.processes), "--rendezvous", meeting]
        ports["rendezvous"] = RENDEZVOUS_PORT
    env = {"OMP_NUM_THREADS": str(settings.threads)}
    if submission.source != Path():
        env |= {"PYTHONPATH": str(workspace / submission.source)}
    return RolePlan("learner", nodes, how.images.learner, how.learner, tuple(command), ports, env)


def _rollout(
    settings: Settings, how: KubernetesSettings, workspace: PurePosixPath, source: Path, count: int
) -> RolePlan:
    engine = settings.rollout.engine
    assert isinstance(engine, VllmEngine) and how.images.rollout is not None  # `combinations.cluster` has seen to it
    dtype = settings.policy.dtype if engine.dtype == "policy" else engine.dtype
    model, gpu = workspace / Layout().sft_checkpoint, how.rollout.gpus > 0
    command = command_line(PYTHON, engine, model, dtype, host="0.0.0.0", port=HTTP_PORT, served="evenkeel", gpu=gpu)
    env = environment(engine, str(settings.threads), gpu=gpu)
    code = workspace / source
    env |= {"PYTHONPATH": str(code / PLUGIN) if code == workspace else f"{code / PLUGIN}:{code}"}
    whole = (PYTHON, "-m", "components.pods.server", *command)
    return RolePlan("rollout", count, how.images.rollout, how.rollout, whole, {"http": HTTP_PORT}, env)


def _for_the_pods(settings: Settings, urls: Sequence[str]) -> Settings:
    """The same run for its pods, with servers at these addresses, which have been started. Ranks are there already, by
    torchrun. Only settings change that a run does not depend on (`components.config.root`).
    """
    changed = settings.model_dump(mode="json")
    changed["launch"] = {"kind": "processes" if settings.learner.has_ranks else "inline"}
    changed["health"]["prometheus"] |= {"port": METRICS_PORT, "host": "0.0.0.0"}
    if urls:
        engine = changed["rollout"]["engine"]
        kept = {name: value for name, value in engine.items() if name not in (*STARTED, "processes")}
        changed["rollout"]["engine"] = {**kept, "urls": list(urls)}
    return Settings.model_validate(changed)
