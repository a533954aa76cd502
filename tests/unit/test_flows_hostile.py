"""What others wrote is shown and never obeyed: one hostile text through every command that prints a record."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from typer.testing import CliRunner

from components.errors import EvenkeelError
from components.files import dump_json, write_text
from components.printing import block, message, printable
from flows.cli import app
from flows.display.output import PlainConsole, log_writer
from flows.host.git import git
from tests.code_graph import ROOT
from tests.proposals import commit, propose_in

FORGED = "promoted by ada"
HOSTILE = f"x\x1b[2K\x1b]0;title\x07\r\n{FORGED}\n\u202e\u2028\x9b2J[bold red]b[/]:smile:<script>"
"""Clears its line, renames the window, forges a line, turns the reading round, and means something to rich and HTML."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry in which whoever may write to it wrote what no command would: a record and a candidate."""
    project = tmp_path_factory.mktemp("hostile") / "project"
    shutil.copytree(ROOT / "configs", project / "configs")
    (project / "dvc.yaml").write_text("stages: {}\n")
    git(project, "init", "--quiet")
    commit(project)
    champion, waiting = (propose_in(project, value).digest for value in (1.0, 2.0))
    objects = project / "registry/objects"
    for digest in (champion, waiting):
        path = objects / f"candidates/{digest}.json"
        candidate = json.loads(path.read_text())
        candidate["run"] |= {"run": HOSTILE, "started_by": [HOSTILE], HOSTILE: HOSTILE}
        candidate["gate"]["checks"] = [{"name": HOSTILE, "result": "pass", "evidence": HOSTILE, "how": HOSTILE}]
        _overwrite(path, candidate)
    record = {"number": 1, "decision": "approve", "digest": champion, "by": HOSTILE, "note": HOSTILE}
    record |= {"gate": candidate["gate"], "policy_sha256": candidate["gate"]["policy_sha256"], "previous": None}
    _overwrite(objects / "promotions/000001.json", {**record, "at": "2026-01-01T00:00:00+00:00"})
    _run(project)
    write_text(project / "mine.yaml", json.dumps({"rules": {"odd": {"when": "entropy < 2", "why": HOSTILE}}}))
    write_text(project / "steps.jsonl", "".join(f'{{"step": {step}, "entropy": 1.0}}\n' for step in range(3)))
    return project


def _overwrite(path: Path, value: Any) -> None:
    path.unlink(missing_ok=True)
    write_text(path, dump_json(value))


def _run(project: Path) -> None:
    """A run whose workspace holds ``HOSTILE`` in the same way."""
    root = project / "runs/demo-1"
    write_text(root / "params.yaml", "{}")
    write_text(root / ".state/progress.jsonl", "".join(f"{json.dumps(event)}\n" for event in EVENTS))
    write_text(root / "logs/train.log", HOSTILE)
    asked = {"config": HOSTILE, "overrides": [HOSTILE], "recipe": ""}
    row = {"run_id": "demo-1", "flow": HOSTILE, "pid": 1, "created": 0.0, "host": HOSTILE, "commit": HOSTILE}
    row |= {"flow_run": HOSTILE, "deployed": None, "api": HOSTILE, "state": "failed", "reason": HOSTILE}
    row |= {"began": "2026-01-01T00:00:00+00:00", "ended": "2026-01-01T00:00:01+00:00", "candidate": HOSTILE}
    write_text(root / ".state/execution.json", dump_json({**row, "asked": asked}))


EVENTS = [
    {"stage": "train", "state": "running", "seconds": 0.0},
    {"stage": "train", "done": 1, "total": 2, "note": HOSTILE, "work": HOSTILE},
]


COMMANDS = (
    ["history"],
    ["history", "--json"],
    ["show", "champion"],
    ["show", "champion", "--json"],
    ["show", "challenger"],
    ["verify"],
    ["verify", "--all"],
    ["verify", "--all", "--json"],
    ["pull", "challenger", "--to", HOSTILE.replace("/", "")],
    ["rollback", "--by", "ada", "--reason", "r", "--to", HOSTILE],
    ["status"],
    ["status", "demo-1"],
    ["status", "demo-1", "--json"],
    ["logs", HOSTILE],
    ["params", "--set", f"name={HOSTILE}"],
    ["rules", HOSTILE],
    ["rules", "mine.yaml"],
    ["audit", "steps.jsonl", "--format", "jsonl", "--rules", "mine.yaml"],
    ["audit", HOSTILE],
)
SPELLED = ("\\u001b", "\\x1b")


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: printable(" ".join(arguments))[:40])
def test_a_hostile_text_is_spelled_out_in_all_that_a_command_prints(project, monkeypatch, arguments):
    monkeypatch.chdir(project)
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, EvenkeelError | SystemExit | None), result.exception
    said = result.output + (str(result.exception) if isinstance(result.exception, EvenkeelError) else "")
    assert any(spelled in said for spelled in SPELLED), "it is shown"
    assert said == block(said), "and nothing of it is obeyed"
    assert [line for line in said.splitlines() if line.startswith(FORGED)] == []
    assert "\N{SMILING FACE WITH OPEN MOUTH AND SMILING EYES}" not in said


def test_a_log_is_shown_as_it_comes_and_not_obeyed(project, monkeypatch):
    monkeypatch.chdir(project)
    said = CliRunner().invoke(app, ["logs", "demo-1", "train"]).output
    assert said == block(HOSTILE.replace("\r\n", "\n"))


def test_a_log_may_break_off_inside_a_character():
    said: list[str] = []
    take = log_writer(said.append)
    for byte in "é\x1b[31m\tz\n".encode() + b"\xff":
        take(bytes([byte]))
    assert "".join(said) == "é\\u001b[31m\tz\n\\xff"


def test_the_console_reads_no_markup_and_lets_no_control_character_through():
    console = PlainConsole(width=60, record=True, file=io.StringIO())
    console.print(HOSTILE, soft_wrap=True)
    console.print(Text("red", "red"), Text("\x1b[31mno"))
    said = console.export_text()
    assert "[bold red]b[/]:smile:" in said
    assert said == block(said)


def test_a_message_indents_what_it_quotes():
    assert message(f"a\n{FORGED}\n  b") == f"a\n  {FORGED}\n  b"
