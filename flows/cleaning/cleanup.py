"""All parts of the janitor's work, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from flows.cleaning import approval_requests, flow_runs, folders, jobsets, processes, workspaces
from flows.cleaning.action import Deed
from flows.display.output import field
from flows.watching.runs import all_runs


def clean(project: Path, keep_days: int, api: str | None, namespace: str = "") -> list[Deed]:
    """Do it; returns what was done. This process is marked as nobody's owner.

    Args:
        keep_days: days for which workspaces of ended runs are kept; 0 keeps all.
        api: address of the Prefect server with the project's own database, where there is one.
        namespace: of the cluster whose JobSets are looked at too; empty where there is none.
    """
    deeds = [*processes.end_leftovers(project)]
    deeds += flow_runs.settle(all_runs(project), api)
    deeds += folders.remove_half_made(project, all_runs(project))
    deeds += folders.remove_weights(all_runs(project))
    if keep_days:
        deeds += workspaces.remove_old(project, all_runs(project), keep_days)
    if namespace:
        deeds += jobsets.remove_left(project, namespace)
    deeds += approval_requests.settle(project, api)
    return deeds


def show(console: Console, deeds: Sequence[Deed]) -> None:
    """A row a deed."""
    if not deeds:
        console.print("nothing that a dead run left")
        return
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("what", "", "done", "why"):
        table.add_column(name, overflow="fold")
    for deed in deeds:
        table.add_row(deed.kind, field(deed.what), field(deed.done), field(deed.why))
    console.print(table)
