"""The flow `promote`: shows a person the evidence for a candidate, waits for a decision, and carries it out.

Started by the event of a candidate, by the janitor where that was lost, or by hand. While it waits it is suspended: it
has no process, and outlives the worker and the server. When it goes on its body runs again from the first line, with
the code, the policy and the registry of that time, so that nothing is taken on trust that was checked before; what was
shown is in the registry (`flows.promoting.waiting_runs`), what was answered on the server (`flows.promoting.rounds`). A
run that fails over an answer therefore has it still when it is begun again, which the janitor does.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext

from components.config.promotion import load_policy
from components.errors import InputError
from components.registry import Approval, Candidate, find, read_history
from components.registry.appending import check_in_force
from flows.governance.commands import SHORT, DecisionCommands, config_of
from flows.governance.model_registry import register_champion
from flows.governance.policies import check_recorded
from flows.governance.registry import DEFAULT, RegistryContext, named_store
from flows.host.git import project_root
from flows.prefect_runtime.states import completed_as, expected_failures
from flows.promoting.answers import Concluded, conclude, store_answer
from flows.promoting.rounds import Answer, asks_already, rounds
from flows.promoting.suspension import ARTIFACT, approvals_needed, outcome_page, request_approval
from flows.promoting.waiting_runs import DUPLICATE, load_request


@flow(name="promote")
@expected_failures
def promote(digest: str, registry: str = DEFAULT) -> str:
    """Ask a person about a candidate, and make it the champion or turn it down; returns its digest.

    Args:
        digest: The candidate, or its first digits.
        registry: Folder of the registry, relative to the project; settings of another kind of registry as JSON.
    """
    project, running = project_root(Path.cwd()), FlowRunContext.get()
    if running is None or (me := running.flow_run) is None:
        raise InputError("not inside a flow run", where="promote", how="start it as a flow")
    store = named_store(project, registry)
    candidate = find(store, digest)
    with get_client(sync_client=True) as client:
        so_far = rounds(client, me.id, candidate.digest)
        other = None if so_far.answer else asks_already(client, me, candidate.digest, registry)
        if other is None:
            client.update_flow_run(me.id, name=f"{candidate.run.get('run', 'candidate')} {candidate.digest[:SHORT]}")
    if other is not None:
        return completed_as(
            candidate.digest, DUPLICATE, f"flow run {other.name} asks about {candidate.digest[:SHORT]} already"
        )
    config = config_of(project, str(candidate.run.get("run", "")), registry)
    context = RegistryContext(project, store, load_policy(project), config)
    check_recorded(project, context.policy)
    said, trouble = read_answer(context, candidate, so_far.answer)
    found = conclude(context, candidate, said)
    if isinstance(found, Concluded):
        page = outcome_page(candidate, found.state, found.words, found.judgement)
        about = f"Candidate {candidate.digest[:SHORT]}: {found.state.lower()}"
        create_markdown_artifact(page, key=ARTIFACT, description=about)
        for line in register_champion(store, found.record) if found.record else ():
            get_run_logger().info(line)
        get_run_logger().info("%s: %s", found.state, found.words)
        return completed_as(candidate.digest, found.state, found.words)
    check_in_force(read_history(context.store), context.policy)  # before anybody reads on
    if me.deployment_id is None:
        lines = DecisionCommands.of(context)
        how = lines.approve(candidate.digest, doubtful=found.judgement.result == "inconclusive")
        words = f"{approvals_needed(found.standing, lines.policy.quorum('promote').signed)}: {how}"
        return completed_as(candidate.digest, "AwaitingApproval", words)
    found = replace(found, note=" ".join(filter(None, (trouble, found.note))))
    request_approval(context, candidate, found, so_far, me)
    return candidate.digest


def read_answer(context: RegistryContext, candidate: Candidate, given: Answer | None) -> tuple[Approval | None, str]:
    """Store the answer; returns the approval, and why an invalid answer was not accepted."""
    if given is None:
        return None, ""
    try:
        request = load_request(context.store, candidate.digest, given.request)
        return store_answer(context, candidate, request, given.values, given.at), ""
    except InputError as error:
        get_run_logger().warning("the answer of %s was not taken: %s", given.at, error)
        return None, f"The answer was not taken: {'; '.join(filter(None, (error.what, error.how)))}."
