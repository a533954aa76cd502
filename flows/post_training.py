"""The flow `post-training`: from a configuration to a candidate awaiting approval.

One Prefect task per stage, in order, each run by DVC in the run's own workspace. Prefect knows when and in what order;
DVC knows what is up to date; the stages know neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from prefect import flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.runtime import deployment, flow_run

from components.config import Settings
from components.config.kubernetes import SAMPLING
from components.config.promotion import load_policy
from components.config.servers import VllmEngine
from components.files import read_json
from components.planning.least import check_run
from components.processes.environments import check_vllm_python, vllm_python
from components.stages import wanted
from components.types import GateCheck
from flows.budget.estimate import begin
from flows.budget.work import located
from flows.governance.registry import signing_key
from flows.host.dvc_process import one_process
from flows.host.git import project_root
from flows.host.processes import take_over
from flows.prefect_runtime import states
from flows.prefect_runtime.states import completed_as, expected_failures, value
from flows.recording import recorded
from flows.recording.lineage import note_starter, propose_run
from flows.run.inputs import check_links
from flows.run.parameters import AS_CONFIGURED, DEMO, Config, Launcher, Limit, Recipe, recipe_file, settings_of
from flows.run.resumption import note_flow_run, refuse_with_resume, reopen, run_of_flow_run
from flows.run.stages import StageResult, execute, reproduce
from flows.run.workspace import Outcome, Workspace, locate
from flows.watching.artifacts import load_plots, publish, publish_estimate
from flows.watching.execution import executing
from flows.watching.tracking import tracked
from flows.watching.watcher import watched


@task(name="stage", task_run_name="{stage}", cache_policy=NO_CACHE)
@expected_failures
def stage_task(workspace: Workspace, stage: str, force: bool = False) -> StageResult:
    """One stage of the line. The UI shows by the name of the state whether it was executed."""
    with watched(workspace, stage):
        result = reproduce(workspace, stage, force=force)
    get_run_logger().info("%s %s in %.0f s; log: %s", stage, result.state, result.seconds, workspace.log(stage))
    if result.state == "cached":
        return completed_as(result, "Cached", "nothing it depends on has changed")
    if result.state == "refused":
        return completed_as(result, "Refused", result.message)
    return result


def run_stage(workspace: Workspace, stage: str, force: bool = False) -> StageResult:
    """One stage of the line as a task of the present flow run, see `flows.run.stages.reproduce`."""
    return value(stage_task(workspace, stage, force))


@task(name="report-refusal", task_run_name="report", cache_policy=NO_CACHE)
@expected_failures
def report_refusal(workspace: Workspace) -> StageResult:
    """The report of a line that ended early."""
    return execute(workspace, "report")


@task(name="propose", task_run_name="propose", cache_policy=NO_CACHE)
@expected_failures
def propose_candidate(workspace: Workspace) -> str:
    """Put the checkpoint into the registry, see `flows.recording.lineage`; returns its digest."""
    return propose_run(workspace, get_run_logger().warning)


@flow(name="post-training")
@expected_failures
def post_training(
    config: Config = DEMO,
    recipe: Recipe = AS_CONFIGURED,
    dataset: str = "",
    launcher: Launcher = AS_CONFIGURED,
    overrides: Sequence[str] = (),
    max_hours: Limit = 0,
    max_gpu_hours: Limit = 0,
    commit: str = "",
    fresh: bool = False,
    resume: str = "",
) -> Outcome:
    """Train, judge and propose a checkpoint.

    Args:
        config: What to run; a file of the project.
        recipe: The method, in place of the one that the configuration extends.
        dataset: Prompts, in place of the configuration's: a .jsonl or .parquet file, or a folder that `datasets` saved.
        launcher: Where the training stage runs.
        overrides: Any other settings, each as section.name=value; `evenkeel params` prints all there are.
        max_hours: Hours of work, retries included, that stop the run; it can be continued. 0: as configured.
        max_gpu_hours: The same, times the GPUs that it works with.
        commit: The recorded code to run; the present working tree when empty.
        fresh: Start over and execute every stage, ignoring the cache.
        resume: A run to go on with, from its workspace and with its settings; only limits and places may be others.
    """
    fields = settings_of(dataset=dataset, launcher=launcher, max_hours=max_hours, max_gpu_hours=max_gpu_hours)
    project = project_root(Path.cwd())
    if resume:
        others = {"config": config != DEMO, "recipe": recipe not in ("", AS_CONFIGURED), "commit": bool(commit)}
        refuse_with_resume("", **others, fresh=fresh)
    if earlier := resume or run_of_flow_run(project, flow_run.get_id()):
        workspace, fresh = reopen(project, earlier, [*fields, *overrides] if resume else ()), False
    else:
        workspace = locate(project, Path(config), [*fields, *overrides], commit or None, recipe_file(recipe))
        check_run(located(workspace), wanted(workspace.settings))
    outcome = run_workspace(workspace, fresh=fresh)
    if outcome.candidate is None:
        return completed_as(outcome, "NoCandidate", outcome.reason)
    return outcome


def run_workspace(workspace: Workspace, *, fresh: bool = False) -> Outcome:
    """Take the run through the whole pipeline and show what came of it. Call it inside a flow run."""
    check_resources(workspace.settings, workspace.root)
    check_links(workspace.settings, workspace.inputs)
    signing_key(workspace.project, load_policy(workspace.project))  # what is wrong with it is said now
    get_run_logger().info("run %s in %s", workspace.run_id, workspace.root)
    with get_client(
        sync_client=True
    ) as client:  # the UI finds it by the run's id: its own name may be typed by a person
        client.update_flow_run(UUID(flow_run.get_id()), tags=sorted({*flow_run.tags, workspace.run_id}))
    note_flow_run(workspace.project, flow_run.get_id(), workspace.run_id)
    wait = get_run_logger().info
    take_over(workspace.project)
    with one_process(workspace.root):  # it loads DVC while the run is estimated
        publish_estimate(workspace, begin(workspace, fresh=fresh, wait=wait))
        with (
            workspace.held(fresh=fresh, wait=wait),
            executing(workspace, "post-training") as set_outcome,
            recorded(workspace, flow_run.get_id()) as recorder,
        ):
            load_plots()
            note_starter(workspace, flow_run.get_id(), deployed=bool(deployment.get_id()))
            with tracked(workspace.settings, workspace.root):
                outcome = run_stages(workspace, force=fresh)
            recorder.conclude(outcome.candidate, outcome.reason)
            publish(workspace, outcome.candidate, outcome.reason)
            set_outcome(outcome.candidate, outcome.reason)
    for problem in recorder.result.problems if recorder.result else ():
        get_run_logger().warning(problem)
    states.announce(workspace, outcome)
    get_run_logger().info("%s: %s", outcome.run_id, outcome.candidate or f"no candidate\n{outcome.reason}")
    return outcome


def check_resources(settings: Settings, folder: Path) -> None:
    """See now that the servers and pods of later stages can be had, and not when the first of these needs one.

    Args:
        folder: Where stages will run.

    Raises:
        InputError: the servers' environment is missing or does not work, or a cluster is not there or refuses the
            run.
    """
    engine, launch = settings.rollout.engine, settings.launch
    elsewhere = launch.kubernetes.stages if launch.kind == "kubernetes" and launch.kubernetes else ()
    if isinstance(engine, VllmEngine) and engine.processes and not set(elsewhere).issuperset(SAMPLING):
        check_vllm_python(vllm_python(engine.python, folder))
    if elsewhere:
        from components.launch.kubernetes.submission import rehearse

        rehearse(settings, folder, [stage for stage in wanted(settings) if stage in elsewhere])


def run_stages(workspace: Workspace, *, force: bool) -> Outcome:
    """Every stage that is wanted, in order, then the proposal. A report is written whatever the answer is."""

    def outcome(candidate: str | None, reason: str = "") -> Outcome:
        return Outcome(workspace.run_id, str(workspace.root), candidate, reason)

    for stage in wanted(workspace.settings):
        result = run_stage(workspace, stage, force)
        if result.state == "refused":
            value(report_refusal(workspace))
            return outcome(None, result.message)
    gate = read_json(workspace.layout.gate)
    if gate["result"] == "fail":
        failed = [GateCheck(**check) for check in gate["checks"] if check["result"] == "fail"]
        return outcome(None, "\n".join(["the gate failed:", *(f"  - {check.words}" for check in failed)]))
    return outcome(value(propose_candidate(workspace)))
