"""`evenkeel gate`: repeats the checks of the gate on a finished run. Nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from components.config import load
from components.errors import EXIT_NO_CANDIDATE, InputError
from components.files import read_json
from components.gate.checks import CHECKS, conclude, judge
from components.gate.checks.health import under
from components.gate.evidence import collect
from components.health.rulebook import load_rules
from components.layout import Layout
from components.types import GateCheck, GateResult
from flows.display.output import field, say
from flows.display.summary import RESULT_STYLES, gate_table
from flows.host.git import project_root
from flows.run.workspace import locate

HEALTH = "training health"
"""The check that is repeated with other rules."""


@dataclass(frozen=True)
class Rejudgement:
    """The gate's result now, and the run's own result (None if the run never reached its gate)."""

    root: Path
    rules: str
    checks: list[GateCheck]
    before: str | None

    @property
    def result(self) -> GateResult:
        return conclude(self.checks)

    def to_dict(self) -> dict[str, Any]:
        """``result`` now, ``before``, the ``checks`` of now, and by which ``rules`` health was judged."""
        checks = [asdict(check) for check in self.checks]
        return {
            "run": str(self.root),
            "result": self.result,
            "before": self.before,
            "rules": self.rules,
            "checks": checks,
        }

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


def rejudge_run(root: Path, rules: Path | None = None) -> Rejudgement:
    """Judge a run by its own settings, or its health by these rules.

    Raises:
        InputError: settings or rules are malformed. Evidence that is missing is no error: it fails its check.
    """
    settings, layout = load(root / "params.yaml"), Layout(root)
    evidence = collect(layout)
    checks = judge(evidence, settings)
    if rules is not None:
        result, text = under(load_rules(rules), evidence, settings)
        health = GateCheck(HEALTH, result, text, "" if result == "pass" else CHECKS[HEALTH].how)
        checks = [health if check.name == HEALTH else check for check in checks]
    before = str(read_json(layout.gate)["result"]) if layout.gate.exists() else None
    return Rejudgement(root, "its own rules" if rules is None else str(rules), checks, before)


def show(console: Console, judgement: Rejudgement) -> None:
    """The checks, the result, and the result of the run's own gate."""
    say(console, f"{judgement.root}, judged by {judgement.rules}")
    console.print(gate_table([check.to_dict() for check in judgement.checks]))
    then = "the run itself never came to its gate" if judgement.before is None else f"the run said {judgement.before}"
    console.print(Text(judgement.result, RESULT_STYLES[judgement.result]), field(f"({then})"))
