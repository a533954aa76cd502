"""The smallest project that runs: a line of two stages that take no time, Git and DVC for real."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from flows.cli import main
from flows.host.dvc_process import one_process
from flows.host.git import git
from flows.run.stages import reproduce
from flows.run.workspace import Workspace, locate
from tests.code_graph import ROOT

DEMO = Path("configs/demo.yaml")
STAGES = ("data", "audit")

LINE = """
import hashlib, json, pathlib, sys
import yaml

stage, settings = sys.argv[1], yaml.load(open("params.yaml"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
write = lambda path, text: (path.parent.mkdir(parents=True, exist_ok=True), path.write_text(text))
out = pathlib.Path("out")
if stage == "data":
    source = settings["data"]["source"].get("path")
    files = sorted(p for p in pathlib.Path(source).rglob("*") if p.is_file()) if source else []
    files = [pathlib.Path(source)] if source and not files else files
    text = "".join(p.read_text() for p in files) + str(settings["seed"])
    write(out / "data/train.jsonl", text)
    write(out / "validation.json", json.dumps({"rows": len(text), "success": True}))
else:
    digest = hashlib.sha256((out / "data/train.jsonl").read_bytes()).hexdigest()
    write(out / "audit.html", digest)
    write(out / "audit.json", json.dumps({"verdict": "pass", "rates": [0.25, int(digest[:4], 16) / 65536]}))
    write(out / "verdict.md", "# Healthy")
write(pathlib.Path(".state/status") / (stage + ".json"), '{"exit_code": 0, "message": ""}')
"""
PIPELINE = """
stages:
  data:
    cmd: python -m components data
    params: [seed, data]
    deps: [components]
    outs: [out/data]
    metrics:
      - out/validation.json: {cache: false}
  audit:
    cmd: python -m components audit
    params: [seed]
    deps: [out/data/train.jsonl, components]
    outs:
      - out/audit.html
      - out/verdict.md: {cache: false}
    metrics:
      - out/audit.json: {cache: false}
"""
FILES = {
    "dvc.yaml": PIPELINE,
    "components/__init__.py": "",
    "components/__main__.py": LINE,
    "code.py": "x = 1\n",
    "constraints.txt": "pyyaml==6.0.0\n",
    "inputs/rows.jsonl": '{"question": "1+1", "answer": "2"}\n',
    ".gitignore": "/runs/\n/out/\n/logs/\n/.state/\n/configs\n__pycache__/\n",
    ".dvcignore": "__pycache__\n/runs\n/logs\n/.state\n",
    ".dvc/.gitignore": "/config.local\n/tmp\n/cache\n",
    ".dvc/config": "[core]\n    analytics = false\n",
}


def build(root: Path) -> Path:
    """A committed project in the new folder ``root``, with the configurations of this one."""
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    (root / "configs").symlink_to(ROOT / "configs")
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=first")
    return root


def add_store(project: Path, url: str) -> None:
    """Make a folder the project's default DVC remote, and commit that."""
    text = f"[core]\n    analytics = false\n    remote = store\n['remote \"store\"']\n    url = {url}\n"
    (project / ".dvc/config").write_text(text, encoding="utf-8")
    git(project, "commit", "--quiet", "--all", "--message=store")


def ready(project: Path, *overrides: str) -> Workspace:
    """The workspace of a configuration, made."""
    workspace = locate(project, DEMO, overrides)
    with workspace.lock():
        workspace.ensure()
    return workspace


def run_line(workspace: Workspace) -> None:
    """Both stages, by one process of DVC as in a run."""
    with one_process(workspace.root):
        for stage in STAGES:
            reproduce(workspace, stage)


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """The exit code of the console script, errors included."""
    monkeypatch.setattr(sys, "argv", ["evenkeel", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        main()
    assert isinstance(caught.value.code, int)
    return caught.value.code
