"""The manual is the code's, and every command that prints a table prints JSON with `--json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer.main
from docs_pages import is_setting
from test_flows_cli import RUNNER

from components.config import Settings
from flows.cli import app
from flows.manual.__main__ import page
from flows.manual.commands import OUTPUTS, leaves
from tests.code_graph import ROOT
from tests.proposals import write_run

COMMANDS = {
    path.removeprefix("evenkeel "): command for path, command in leaves(typer.main.get_command(app), "evenkeel")
}
WITHOUT = {
    "approve": "sentences", "reject": "sentences", "promote": "sentences", "rollback": "sentences",
    "adopt-policy": "sentences", "keys new": "a line for the policy", "pull": "a line", "params": "YAML",
    "logs": "a log", "cluster logs": "a log", "watch": "lines as they come; `--state` has them as JSON",
    "cancel": "sentences", "cluster cancel": "a sentence", "track": "sentences", "serve": "an address",
    "model fetch": "lines", "model convert": "lines", "init": "a line", "update": "a line", "export": "a line",
}  # fmt: skip
"""Commands that print no table -> what they print."""


def test_the_page_is_the_one_that_the_code_makes() -> None:
    text = (ROOT / "docs/manual.md").read_text(encoding="utf-8")
    assert text == page(), "out of date: python -m flows.manual > docs/manual.md"


def test_every_command_that_prints_a_table_has_json_and_its_keys_are_in_the_manual() -> None:
    having = {name for name, command in COMMANDS.items() if any("--json" in one.opts for one in command.params)}
    assert having == set(OUTPUTS)
    assert set(COMMANDS) - having == set(WITHOUT)


def test_every_setting_of_the_manual_can_be_set_and_none_is_left_out() -> None:
    heads, rows = [], {}
    for line in page().partition("## Settings")[2].splitlines():
        if line.startswith("##"):
            heads.append(line.split("`")[1] if "`" in line else "")
        elif line.startswith("| `"):
            rows[f"{heads[-1]}.{line.split('`')[1]}".lstrip(".")] = line
    plain = [path for path in rows if "NAME" not in path and "[]" not in path]
    assert [path for path in plain if not is_setting(path, Settings)] == []
    named = {"evaluation.suites.NAME.prompts", "reward.functions.NAME.weight", "sinks.NAME.folder"}
    assert named | {"train.steps", "rollout.engine.urls", "budget.hours"} <= set(rows)
    assert rows["rollout.group_size"] == "| `group_size` | integer ≥ 1 | `8` | G, completions per prompt. |"


def test_every_setting_has_a_meaning() -> None:
    rows = [line for line in page().partition("## Settings")[2].splitlines() if line.startswith("| `")]
    assert [row for row in rows if row.endswith("|  |")] == [], "describe it: Field(description=...)"


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (["rules", "--json"], {"entropy_collapse"}),
        (["plan", "--json"], {"fits", "processes", "others"}),
        (["doctor", "--json"], {"name", "state", "finding", "fix"}),
    ],
)
def test_standard_output_is_the_json_alone(arguments: list[str], keys: set[str], monkeypatch: Any) -> None:
    monkeypatch.chdir(ROOT)
    result = RUNNER.invoke(app, arguments)
    found = json.loads(result.stdout)
    assert keys <= set(found[0] if isinstance(found, list) else found)


def test_a_gate_that_is_judged_again_is_json_too(tmp_path: Path, monkeypatch: Any) -> None:
    layout = write_run(tmp_path / "runs/demo")
    monkeypatch.chdir(tmp_path)
    found = json.loads(RUNNER.invoke(app, ["gate", "--run", str(layout.root), "--json"]).stdout)
    assert found["result"] == found["before"]
    assert {"name", "result", "evidence"} <= set(found["checks"][0])
