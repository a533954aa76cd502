"""The flow `post-training`: from a configuration to a candidate awaiting approval.

One Prefect task per stage, in order, each run by DVC in the run's own workspace. Prefect knows when and in what order;
DVC knows what is up to date; the stages know neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from prefect import flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run

from components.config import Settings
from components.config.servers import VllmEngine
from components.errors import NoCandidate
from components.files import read_json
from components.processes.environments import check_vllm_python, learner_key, vllm_python
from components.registry import propose
from components.stages import wanted
from flows.artifacts import publish
from flows.git import project_root
from flows.recording import recorded
from flows.registry import project_store
from flows.resuming import reopen
from flows.stages import StageResult, execute, reproduce
from flows.workspace import Workspace, locate


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to: a candidate's digest, or the reason why there is none."""

    run_id: str
    workspace: str
    candidate: str | None
    reason: str = ""


@task(name="stage", task_run_name="{stage}", cache_policy=NO_CACHE)
def run_stage(workspace: Workspace, stage: str, force: bool = False) -> StageResult:
    """One stage of the line, see `flows.stages.reproduce`."""
    return reproduce(workspace, stage, force=force)


@task(name="report-refusal", task_run_name="report", cache_policy=NO_CACHE)
def report_refusal(workspace: Workspace) -> StageResult:
    """The report of a line that ended early."""
    return execute(workspace, "report")


@task(name="propose", task_run_name="propose", cache_policy=NO_CACHE)
def propose_candidate(workspace: Workspace) -> str:
    """Put the checkpoint into the registry with its evidence; returns its digest. Proposing twice changes nothing."""
    layout, settings = workspace.layout, workspace.settings
    origin = {"run": workspace.run_id, "commit": workspace.snapshot.commit, "tree": workspace.snapshot.tree}
    store = project_store(workspace.project, settings)
    return propose(store, layout.train_checkpoint, read_json(layout.gate), origin).digest


@flow(name="post-training")
def post_training(
    config: str = "configs/demo.yaml",
    overrides: list[str] | None = None,
    commit: str | None = None,
    fresh: bool = False,
    resume: str = "",
) -> Outcome:
    """Train, judge and propose a checkpoint.

    Args:
        config: configuration file, relative to the folder where the flow runs.
        overrides: settings that replace those of the file, each as ``section.name=value``.
        commit: the recorded code to run; the present working tree when empty.
        fresh: begin anew and execute every stage, whatever is already known.
        resume: the run to go on with, from its workspace; configuration, overrides and commit are then its own.
    """
    project = project_root(Path.cwd())
    workspace = reopen(project, resume) if resume else locate(project, Path(config), overrides or (), commit)
    check_surroundings(workspace.settings, workspace.root)
    with (
        workspace.held(fresh=fresh, wait=get_run_logger().info),
        recorded(workspace, "" if resume else config, overrides, flow_run.get_id()) as recorder,
    ):
        outcome = run_line(workspace, force=fresh)
        recorder.conclude(outcome.candidate, outcome.reason)
        publish(workspace.layout, workspace.run_id)
    get_run_logger().info("%s: %s", outcome.run_id, outcome.candidate or f"no candidate\n{outcome.reason}")
    return outcome


def check_surroundings(settings: Settings, folder: Path) -> None:
    """See now that the servers and ranks of later stages can be had, and not when the first of these needs one.

    Args:
        folder: Where stages will run.

    Raises:
        InputError: the servers' environment is missing or does not work, or the ranks' key is missing.
    """
    engine = settings.rollout.engine
    if isinstance(engine, VllmEngine) and engine.processes:
        check_vllm_python(vllm_python(engine.python, folder))
    if settings.learner.ranks.address is not None:
        learner_key()


def run_line(workspace: Workspace, *, force: bool) -> Outcome:
    """Every stage that is wanted, in order, then the proposal. A report is written whatever the answer is."""

    def outcome(candidate: str | None, reason: str = "") -> Outcome:
        return Outcome(workspace.run_id, str(workspace.root), candidate, reason)

    try:
        for stage in wanted(workspace.settings):
            run_stage(workspace, stage, force)
    except NoCandidate as refusal:
        report_refusal(workspace)
        return outcome(None, str(refusal))
    gate = read_json(workspace.layout.gate)
    if gate["result"] == "fail":
        failed = [f"  - {check['name']}: {check['evidence']}" for check in gate["checks"] if check["result"] == "fail"]
        return outcome(None, "\n".join(["the gate failed:", *failed]))
    return outcome(propose_candidate(workspace))
