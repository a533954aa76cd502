"""What `evenkeel run --dry-run` prints: which run it would be, what would be executed, and what is not default."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from components.config import Settings
from components.errors import InputError
from components.stages import wanted
from flows.budget.estimate import Estimate, estimate, exceeded, line, table
from flows.display.output import field, say
from flows.run.stages import environment
from flows.run.workspace import Workspace

Leaf = tuple[str, Any]


def show_plan(console: Console, workspace: Workspace, *, fresh: bool = False) -> None:
    """Print the plan, with ``fresh`` that of a run that starts over. Nothing is executed and no workspace is made."""
    begun = "  (new)" if not workspace.root.exists() else "  (made again)" if fresh else ""
    facts = Table.grid(padding=(0, 2))
    facts.add_row("run", field(workspace.run_id))
    facts.add_row("workspace", field(f"{workspace.root}{begun}"))
    origin = "HEAD" if workspace.snapshot.clean else "a snapshot of the working tree"
    facts.add_row("commit", f"{workspace.snapshot.commit[:12]}  ({origin})")
    console.print(facts, highlight=False)
    found, states = _planned(workspace, fresh)
    console.print(table(found, states))
    say(console, *line(workspace, found).splitlines())
    say(console, *(f"  {key} = {json.dumps(value)}" for key, value in differences(workspace.settings)))


def _planned(workspace: Workspace, fresh: bool) -> tuple[Estimate, dict[str, str]]:
    """The estimate of what is left to do, and what would be done with each stage."""
    found = estimate(workspace, fresh=fresh)
    states = planned_states(workspace, found, fresh=fresh)
    return found.without([stage for stage, state in states.items() if state == "up to date"]), states


def to_dict(workspace: Workspace, *, fresh: bool = False) -> dict[str, Any]:
    """The plan as JSON values. ``stages`` are those with something to do; seconds are estimates.
    ``refused`` says which limits of the budget are known to be exceeded, "" for none."""
    found, states = _planned(workspace, fresh)
    return {
        "run": workspace.run_id,
        "workspace": str(workspace.root),
        "commit": workspace.snapshot.commit,
        "clean": workspace.snapshot.clean,
        "states": states,
        "stages": [asdict(stage) for stage in found.stages],
        "seconds": found.seconds,
        "low": found.low,
        "high": found.high,
        "gpu_hours": found.gpu_hours,
        "refused": exceeded(workspace, found.without_guesses()),
        "settings": dict(differences(workspace.settings)),
    }


def planned_states(workspace: Workspace, found: Estimate, *, fresh: bool = False) -> dict[str, str]:
    """Stage -> what a run would do with it now; one that starts over executes all."""
    stages = wanted(workspace.settings)
    cached = {stage.stage for stage in found.stages if stage.basis == "unchanged"}
    executed = {stage: "cached" if stage in cached else "executed" for stage in stages}
    if fresh or not workspace.root.exists():
        return executed
    command, env = [sys.executable, "-m", "dvc", "status", "--json"], environment(workspace)
    done = subprocess.run(command, cwd=workspace.root, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"dvc status: {done.stderr.strip()}", where=workspace.root, how="`--fresh` creates it again")
    changed = json.loads(done.stdout)
    return {stage: executed[stage] if stage in changed else "up to date" for stage in stages}


def differences(settings: Settings) -> list[Leaf]:
    """Settings that are not the default of their section, in file order; rules are named by their file."""
    defaults = dict(leaves(Settings().model_dump(mode="json")))
    chosen = leaves(settings.model_dump(mode="json"))
    return [(k, v) for k, v in chosen if not k.startswith("health.rules.") and defaults.get(k, ...) != v]


def leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[Leaf]:
    """Dotted key and value of every setting."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
