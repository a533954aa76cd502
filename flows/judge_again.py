"""`evenkeel gate`: the checks of the gate once more, on what a finished run left. Nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from components.config import Settings, load
from components.errors import EXIT_NO_CANDIDATE, InputError
from components.files import read_json
from components.health import replay
from components.health.rulebook import load_rules
from components.layout import Layout
from components.stages.gate import Evidence, collect, conclude, judge
from components.types import GateCheck, GateResult
from flows.git import project_root
from flows.summary import RESULT_STYLES, gate_table
from flows.workspace import locate


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
    """Judge a run by its own settings, or by these and other health rules.

    Raises:
        InputError: settings or rules are malformed. Evidence that is missing is no error: it fails its check.
    """
    settings, layout = load(root / "params.yaml"), Layout(root)
    evidence = collect(layout)
    if rules is not None:
        settings, evidence = under(settings, evidence, rules)
    before = str(read_json(layout.gate)["result"]) if layout.gate.exists() else None
    return Judgement(root, "its own rules" if rules is None else str(rules), judge(evidence, settings), before)


def under(settings: Settings, evidence: Evidence, rules: Path) -> tuple[Settings, Evidence]:
    """The same run under other rules: what the monitor said while training was said by other rules and cannot agree."""
    book = load_rules(rules)
    records = evidence.parts["records"]
    verdicts = records if isinstance(records, InputError) else replay(book, records)
    health = settings.health.model_copy(update={"rules": book})
    return settings.model_copy(update={"health": health}), replace(
        evidence, parts={**evidence.parts, "verdicts": verdicts}
    )


def show(console: Console, judgement: Judgement) -> None:
    """The checks, and the result beside what the run's own gate said."""
    console.print(f"{judgement.root}, judged by {judgement.rules}", highlight=False, markup=False, soft_wrap=True)
    console.print(gate_table([check.to_dict() for check in judgement.checks]))
    then = "the run itself never came to its gate" if judgement.before is None else f"the run said {judgement.before}"
    console.print(Text(judgement.result, RESULT_STYLES[judgement.result]), Text(f"({then})"))
