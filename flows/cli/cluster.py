"""Commands that look at runs on a cluster, and end them."""

from __future__ import annotations

from typing import Annotated, get_args

import typer
from rich.table import Table
from rich.text import Text

from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.diagnosis import Finding
from components.launch.kubernetes.names import Role
from components.printing import block, message, printable
from components.working import clock
from flows.cli.base import AsJson, answer, app, console
from flows.cluster import runs as clusters
from flows.cluster.runs import ClusterRun
from flows.display.output import field, print_json, say

cluster = typer.Typer(help="Runs on a Kubernetes cluster: what they do, their logs, their end.", no_args_is_help=True)
app.add_typer(cluster, name="cluster")

Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or the name of its JobSet.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the runs.")]
Context = Annotated[str | None, typer.Option("--context", help="Context of the kubeconfig; else the present one.")]
Stage = Annotated[str, typer.Option("--stage", help="The stage, where it is not training.")]
EVENKEEL = "evenkeel"
STYLES = {"pending": "yellow", "running": "cyan", "succeeded": "green", "failed": "red", "cancelled": "red"}


@cluster.command()
def status(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="A run's id, or its JobSet's name.")] = None,
    stage: Stage = "train",
    namespace: Namespace = EVENKEEL,
    context: Context = None,
    as_json: AsJson = False,
) -> None:
    """What the runs on the cluster are doing, or all about one: its pods, and what is the matter with them."""
    place = Cluster.connect(namespace, context)
    if run is None:
        found = clusters.all_runs(place)
        table = _table(found) if found else f"no runs in namespace {namespace}"
        answer(as_json, lambda: [one.to_dict() for one in found], lambda: console.print(table))
        return
    one, findings = clusters.describe(clusters.find(place, run, stage))
    if one is None:
        raise typer.Exit(2)
    if as_json:
        rows = [{"what": finding.what, "where": finding.where, "how": finding.how} for finding in findings]
        print_json({**one.to_dict(), "findings": rows})
    else:
        _show(one, findings)


def _show(one: ClusterRun, findings: list[Finding]) -> None:
    console.print(_table([one]))
    pods = ", ".join(f"{role} {running} of {wanted}" for role, (running, wanted) in one.pods.items())
    console.print(f"pods that run: {pods}")
    if one.status.message:
        console.print(Text(message(one.status.message)), soft_wrap=True)
    for finding in (finding for finding in findings if finding.advice not in one.status.message):
        console.print(Text(f"- {message(finding.what)}\n  where: {printable(finding.where)}"), soft_wrap=True)
        console.print(Text(f"  fix:   {message(finding.how)}"), soft_wrap=True)


@cluster.command()
def logs(
    run: Run,
    role: Annotated[str, typer.Argument(help="learner or rollout.")] = "learner",
    index: Annotated[int, typer.Argument(min=0, help="Of several pods the one with this number.")] = 0,
    stage: Stage = "train",
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the pod ends.")] = False,
    namespace: Namespace = EVENKEEL,
    context: Context = None,
) -> None:
    """What a pod of a run has printed."""
    if role not in get_args(Role):
        raise typer.BadParameter(f"{role!r} is not one of {', '.join(get_args(Role))}")
    place = Cluster.connect(namespace, context)
    for line in clusters.log(place, clusters.find(place, run, stage), role, index, follow=follow):  # type: ignore[arg-type]
        print(block(line), flush=True)


@cluster.command()
def cancel(run: Run, stage: Stage = "train", namespace: Namespace = EVENKEEL, context: Context = None) -> None:
    """End a run on the cluster. It writes a checkpoint first, from which it continues when it is started again."""
    place = Cluster.connect(namespace, context)
    found = clusters.find(place, run, stage)
    assert found.jobset is not None
    place.delete_jobset(found.name, found.jobset["metadata"]["uid"])
    shows = f"`evenkeel cluster status -n {namespace}` shows when it is gone"
    say(console, f"{found.name} is being ended; {shows}")


def _table(runs: list[ClusterRun]) -> Table:
    table = Table("run", "stage", "owner", "state", "restarts", "pods", "age")
    for column in table.columns:
        column.no_wrap = True
    for one in runs:
        state = field(one.status.state, STYLES[one.status.state])
        figures = (str(one.restarts), f"{one.running}/{one.wanted}", clock(one.age))
        table.add_row(field(one.run), field(one.stage), field(one.owner), state, *figures)
    return table
