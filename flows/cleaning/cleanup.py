"""All cleanups of the janitor, in order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from flows.cleaning import approval_requests, leftovers, servers, workspaces
from flows.cleaning.leftovers import CleanupAction
from flows.display.output import field, plain_table
from flows.watching.runs import all_runs


def clean(project: Path, keep_days: int, api: str | None, namespace: str = "") -> list[CleanupAction]:
    """Run all cleanups; returns the actions. This process does not become an owner of processes.

    Args:
        keep_days: days for which workspaces of ended runs are kept; 0 keeps all.
        api: address of the Prefect server with the project's own database, where there is one.
        namespace: of the cluster whose JobSets are looked at too; empty where there is none.
    """
    actions = [*leftovers.end_leftovers(project)]
    actions += servers.close_dead(all_runs(project), api)
    actions += leftovers.remove_partial(project, all_runs(project))
    actions += leftovers.remove_weights(all_runs(project))
    if keep_days:
        actions += workspaces.remove_old(project, all_runs(project), keep_days)
    if namespace:
        actions += servers.remove_orphans(project, namespace)
    actions += approval_requests.settle_requests(project, api)
    return actions


def show(console: Console, actions: Sequence[CleanupAction]) -> None:
    """A row per action."""
    if not actions:
        console.print("nothing that a dead run left")
        return
    table = plain_table("what", "", "done", "why")
    for column in table.columns:
        column.overflow = "fold"
    for action in actions:
        table.add_row(action.kind, field(action.what), field(action.done), field(action.why))
    console.print(table)
