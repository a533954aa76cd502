"""The flow `promote`: shows a person the evidence for a candidate, waits for a decision, and carries it out.

Started by the event of a candidate, by the janitor where that was lost, or by hand. While it waits it is suspended: it
has no process, and outlives the worker and the server. When it goes on its body runs again from the first line, with
the code, the policy and the registry of that time, so that nothing is taken on trust that was checked before; what was
shown is in the registry (`flows.promoting.request`), what was answered on the server (`flows.promoting.rounds`). A run
that fails over an answer therefore has it still when it is begun again, which the janitor does.
"""

from __future__ import annotations

from pathlib import Path

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext

from components.config.promotion import load_policy
from components.errors import InputError
from components.registry import Approval, Candidate, find, read_history
from components.registry.appending import check_in_force
from flows.governance.commands import SHORT, Lines
from flows.governance.policies import check_recorded
from flows.governance.registry import Desk
from flows.host.git import project_root
from flows.prefect_runtime.states import answer, told
from flows.promoting.answers import take
from flows.promoting.duplicates import asks_already
from flows.promoting.evidence import ended, needs
from flows.promoting.outcome import Ended, conclude
from flows.promoting.registries import DEFAULT, named_store
from flows.promoting.request import recall
from flows.promoting.rounds import Answer, rounds
from flows.promoting.suspension import ARTIFACT, ask
from flows.promoting.waiting_runs import LEFT


@flow(name="promote")
@told
def promote(digest: str, registry: str = DEFAULT) -> str:
    """Ask a person about a candidate, and make it the champion or turn it down; returns its digest.

    Args:
        digest: The candidate, or its first digits.
        registry: Folder of the registry, relative to the project; settings of another kind of registry as JSON.
    """
    project, me = project_root(Path.cwd()), present()
    store = named_store(project, registry)
    candidate = find(store, digest)
    with get_client(sync_client=True) as client:
        so_far = rounds(client, me.id, candidate.digest)
        other = None if so_far.answer else asks_already(client, me, candidate.digest, registry)
        if other is None:
            client.update_flow_run(me.id, name=f"{candidate.run.get('run', 'candidate')} {candidate.digest[:SHORT]}")
    if other is not None:
        return answer(candidate.digest, LEFT, f"flow run {other.name} asks about {candidate.digest[:SHORT]} already")
    desk = Desk(project, store, load_policy(project))
    check_recorded(project, desk.policy)
    said, trouble = hear(desk, candidate, so_far.answer)
    found = conclude(desk, candidate, said)
    if isinstance(found, Ended):
        publish(candidate, found)
        get_run_logger().info("%s: %s", found.state, found.words)
        return answer(candidate.digest, found.state, found.words)
    check_in_force(read_history(desk.store), desk.policy)  # before anybody reads on
    if me.deployment_id is None:
        policy = desk.policy.settings
        how = Lines(policy).approve(candidate.digest, doubtful=found.judgement.result == "inconclusive")
        words = f"{needs(found.standing, policy.quorum('promote').signed)}: {how}"
        return answer(candidate.digest, "AwaitingApproval", words)
    ask(desk, candidate, found.noting(trouble), so_far, me)
    return candidate.digest


def present() -> FlowRun:
    """This flow run."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise InputError("not inside a flow run", where="promote", how="start it as a flow")
    return context.flow_run


def hear(desk: Desk, candidate: Candidate, heard: Answer | None) -> tuple[Approval | None, str]:
    """Keep what was answered; or why it cannot be taken for an answer."""
    if heard is None:
        return None, ""
    try:
        request = recall(desk.store, candidate.digest, heard.request)
        return take(desk, candidate, request, heard.values, heard.at), ""
    except InputError as error:
        get_run_logger().warning("the answer of %s was not taken: %s", heard.at, error)
        return None, f"The answer was not taken: {'; '.join(filter(None, (error.what, error.how)))}."


def publish(candidate: Candidate, found: Ended) -> None:
    """Leave what it came to as an artifact."""
    create_markdown_artifact(
        ended(candidate, found.state, found.words, found.judgement),
        key=ARTIFACT,
        description=f"Candidate {candidate.digest[:SHORT]}: {found.state.lower()}",
    )
