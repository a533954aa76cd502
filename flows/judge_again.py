"""`evenkeel gate`: the checks of the gate once more, on what a finished run left. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from components.config import load
from components.config.judgement import RuleSettings
from components.errors import EXIT_NO_CANDIDATE, InputError
from components.files import read_json
from components.health import replay
from components.health.rulebook import load_rules
from components.layout import Layout
from components.stages.evidence import Evidence, collect
from components.stages.gate import blind, conclude, judge
from components.types import GateCheck, GateResult, StepRecord
from flows.git import project_root
from flows.summary import RESULT_STYLES, gate_table
from flows.workspace import locate

HEALTH = "training health"
"""The check that other rules answer anew."""


@dataclass(frozen=True)
class Judgement:
    """What the gate says now, and what it said then (None where the run never came to it)."""

    root: Path
    rules: str
    checks: list[GateCheck]
    before: str | None

    @property
    def result(self) -> GateResult:
        return conclude(self.checks)

    @property
    def exit_code(self) -> int:
        """0 for pass, 3 for fail and for inconclusive."""
        return 0 if self.result == "pass" else EXIT_NO_CANDIDATE


def find_run(run: Path | None, config: Path, overrides: Sequence[str] = ()) -> Path:
    """The folder of a run: the one that is named, by path or by its name in `runs`, or that of a configuration.

    Raises:
        InputError: it does not exist, or no run has written anything there.
    """
    if run is None:
        root = locate(project_root(Path.cwd()), config, overrides).root
        how = f"run it first: evenkeel run --config {config}"
    else:
        root = run if run.exists() else Path("runs") / run
        how = "name a folder of runs/"
    if not (root / "params.yaml").is_file() or not Layout(root).out.is_dir():
        raise InputError("no run has left anything here", where=root, how=how)
    return root


def judge_again(root: Path, rules: Path | None = None) -> Judgement:
    """Judge a run by its own settings, or its health by these rules.

    Raises:
        InputError: settings or rules are malformed. Evidence that is missing is no error: it fails its check.
    """
    settings, layout = load(root / "params.yaml"), Layout(root)
    evidence = collect(layout)
    checks = judge(evidence, settings)
    if rules is not None:
        health = health_under(load_rules(rules), evidence)
        checks = [health if check.name == HEALTH else check for check in checks]
    before = str(read_json(layout.gate)["result"]) if layout.gate.exists() else None
    return Judgement(root, "its own rules" if rules is None else str(rules), checks, before)


def health_under(rules: Mapping[str, RuleSettings], evidence: Evidence) -> GateCheck:
    """What rules that nobody watched by say of a training: nothing grave that was not undone, and no rule blind."""
    try:
        records: Sequence[StepRecord] = evidence.read("records")
    except InputError as error:
        return GateCheck(HEALTH, "fail", error.what)
    undone = {record.step for record in records if "rolled_back_to" in record.notes}
    spoke = replay(rules, records)
    for verdict in spoke:
        if verdict.level == "stop" or (verdict.level == "rollback" and verdict.step not in undone):
            return GateCheck(
                HEALTH, "fail", f"{verdict.rule} says {verdict.level} at step {verdict.step}: {verdict.reason}"
            )
    if missing := blind(rules, records):
        return GateCheck(HEALTH, "fail", missing)
    said = ", ".join(f"{verdict.rule} ({verdict.level}, step {verdict.step})" for verdict in spoke)
    return GateCheck(HEALTH, "pass", f"rules that spoke: {said}" if said else "no rule spoke")


def show(console: Console, judgement: Judgement) -> None:
    """The checks, and the result beside what the run's own gate said."""
    console.print(f"{judgement.root}, judged by {judgement.rules}", highlight=False, markup=False, soft_wrap=True)
    console.print(gate_table([check.to_dict() for check in judgement.checks]))
    then = "the run itself never came to its gate" if judgement.before is None else f"the run said {judgement.before}"
    console.print(Text(judgement.result, RESULT_STYLES[judgement.result]), Text(f"({then})"))
