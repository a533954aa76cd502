"""Commands that look at runs on a cluster, and end them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from components.errors import InputError
from components.launch.base import JobStatus
from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.diagnosis import Finding, diagnose
from components.launch.kubernetes.names import OWNER, RUN, SELECTOR, STAGE, Role, jobset_name
from components.launch.kubernetes.observed import (
    ROLES,
    Observed,
    gather,
    index_of,
    labels,
    metadata,
    name_of,
    notes,
    part,
)
from components.launch.kubernetes.status import status_of
from components.printing import block, message, printable
from components.working import clock
from flows.cli.base import AsJson, answer, app, console
from flows.display.output import field, print_json, say

cluster = typer.Typer(help="Runs on a Kubernetes cluster: what they do, their logs, their end.", no_args_is_help=True)
app.add_typer(cluster, name="cluster")

Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or the name of its JobSet.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the runs.")]
Context = Annotated[str | None, typer.Option("--context", help="Context of the kubeconfig; else the present one.")]
Stage = Annotated[str, typer.Option("--stage", help="The stage, where it is not training.")]
EVENKEEL = "evenkeel"
STYLES = {"pending": "yellow", "running": "cyan", "succeeded": "green", "failed": "red", "cancelled": "red"}


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """A JobSet as a person sees it."""

    name: str
    run: str
    stage: str
    owner: str
    since: str
    restarts: int
    pods: dict[str, tuple[int, int]]
    """Role -> how many run, and how many are wanted."""
    status: JobStatus

    @classmethod
    def of(cls, observed: Observed) -> ClusterRun:
        jobset = observed.jobset or {}
        jobs = part(jobset, "spec").get("replicatedJobs") or ()
        wanted = {one["name"]: part(one, "template", "spec").get("completions", 1) for one in jobs}
        return cls(
            name=observed.name,
            run=labels(jobset).get(RUN, ""),
            stage=notes(jobset).get(STAGE, ""),
            owner=labels(jobset).get(OWNER, ""),
            since=metadata(jobset).get("creationTimestamp", ""),
            restarts=observed.restarts,
            pods={role: (_running(observed, role), count) for role, count in wanted.items()},
            status=status_of(observed),
        )

    def to_dict(self) -> dict[str, Any]:
        found = asdict(self)
        said: dict[str, Any] = found.pop("status")
        return {**found, **said}


def _running(observed: Observed, role: Role) -> int:
    return sum(part(pod, "status").get("phase") == "Running" for pod in observed.pods_of(role))


def _all_runs(cluster: Cluster) -> list[ClusterRun]:
    """Those of the namespace, the newest first."""
    found = [gather(cluster, name_of(one)) for one in cluster.jobsets(SELECTOR)]
    there = [ClusterRun.of(one) for one in found if one.jobset is not None]  # others went away between two looks
    return sorted(there, key=lambda one: one.since, reverse=True)


def _find(cluster: Cluster, run: str, stage: str) -> Observed:
    """A run by its id, or by the name of its JobSet. Where there is none it is an `InputError`."""
    for name in dict.fromkeys((jobset_name(run, stage), run)):
        observed = gather(cluster, name)
        if observed.jobset is not None:
            return observed
    lists = f"`evenkeel cluster status -n {cluster.namespace}` lists what there is, and of which stage (--stage)"
    how = f"{lists}; ended ones go after launch.kubernetes.ttl seconds"
    raise InputError(f"there is no run {run!r} on the cluster", where=f"namespace {cluster.namespace}", how=how)


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
        found = _all_runs(place)
        table = _table(found) if found else f"no runs in namespace {namespace}"
        answer(as_json, lambda: [one.to_dict() for one in found], lambda: console.print(table))
        return
    observed = _find(place, run, stage)
    one, findings = ClusterRun.of(observed), diagnose(observed)
    if as_json:
        print_json({**one.to_dict(), "findings": [asdict(finding) for finding in findings]})
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
    if role not in ROLES:
        raise typer.BadParameter(f"{role!r} is not one of {', '.join(ROLES)}")
    place = Cluster.connect(namespace, context)
    observed = _find(place, run, stage)
    there = {(name, index_of(pod)): pod for name in ROLES for pod in sorted(observed.pods_of(name), key=name_of)}
    if (role, index) not in there:
        how = f"there are: {', '.join(f'{name} {number}' for name, number in there) or 'none'}"
        raise InputError(f"no pod {role} {index} is there", where=observed.name, how=how)
    for line in place.log(name_of(there[role, index]), role, follow=follow):
        print(block(line), flush=True)


@cluster.command()
def cancel(run: Run, stage: Stage = "train", namespace: Namespace = EVENKEEL, context: Context = None) -> None:
    """End a run on the cluster. It writes a checkpoint first, from which it continues when it is started again."""
    place = Cluster.connect(namespace, context)
    found = _find(place, run, stage)
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
        running, wanted = (sum(counts[place] for counts in one.pods.values()) for place in (0, 1))
        age = (datetime.now(UTC) - datetime.fromisoformat(one.since)).total_seconds()
        figures = (str(one.restarts), f"{running}/{wanted}", clock(age))
        table.add_row(field(one.run), field(one.stage), field(one.owner), state, *figures)
    return table
