"""What DVC and Prefect cost: the demo's line, made short, stage by stage, under DVC, and as a run of a deployment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from components.config import Settings, dump, load, pin_inputs
from components.stages import wanted
from tests.benchmarks.section import Row, Rows, Scale, Section
from tests.benchmarks.spread import spread, table
from tests.code_graph import ROOT
from tests.project import commit_all, copy_project

SHORT = [
    "data.source.rows=2000",
    "sft.steps=40",
    "train.steps=4",
    "triage.override=only for its time",
    "triage.prompts=16",
]
CLOCK = """\
import atexit, os, sys, time

if "components" in sys.orig_argv[1:4]:
    began = time.time()

    def note():
        with open(os.environ["EVENKEEL_BENCH_CLOCK"], "a", encoding="utf-8") as file:
            file.write(f"{time.time() - began}\\n")

    atexit.register(note)
"""
"""Python loads a module `sitecustomize` by itself when it starts: so every stage adds its seconds to a file."""
ARMS = {"bare": "bare commands", "dvc": "DVC alone", "prefect": "Prefect and DVC"}
ROUNDS = (1, 2, 3)
POLL = 5.0
"""Seconds between two looks at the run, which take processor time from it. The server knows when it ended."""
HOUR = 3600.0


class Orchestration(Section):
    title = "Orchestration"

    def cells(self, scale: Scale) -> Sequence[str]:
        rounds = ROUNDS if scale == "full" else ROUNDS[:1]
        arms = ARMS if scale == "full" else ["bare"]
        return [f"{arm} {number}" for number in rounds for arm in arms]

    def measure(self, cell: str, scale: Scale, folder: Path) -> Row:
        arm, number = cell.split()
        own = folder / f"{arm}-{number}"
        own.mkdir()
        smaller = ["data.source.rows=400", "sft.steps=1"] if scale == "smoke" else []
        settings = pin_inputs(load(ROOT / "configs/demo.yaml", [*SHORT, *smaller]))
        within = clocked(own)
        row = RUNS[arm](own, settings, {**os.environ, **within}, scale)
        stages = Path(within["EVENKEEL_BENCH_CLOCK"]).read_text("utf-8").split()
        return {**row, "within_s": sum(map(float, stages)), "stages": len(stages)}

    def figures(self, rows: Rows) -> dict[str, str]:
        """What is added is whole minus whole of one round: where it is spent says the table."""
        arms = {arm: [row for cell, row in rows.items() if cell.split()[0] == arm] for arm in ARMS}
        lines = [[name, *_line(arms[arm])] for arm, name in ARMS.items()]
        pairs = [(rows.get(f"bare {number}"), rows.get(f"prefect {number}")) for number in ROUNDS]
        rounds = [(bare, both) for bare, both in pairs if bare and both]
        added = [both["whole_s"] - bare["whole_s"] for bare, both in rounds]
        within = [both["within_s"] - bare["within_s"] for bare, both in rounds]
        outside = [more - slower for more, slower in zip(added, within, strict=True)]
        shares = [100 * more / bare["whole_s"] for more, (bare, _) in zip(added, rounds, strict=True)]
        head = ["", "in all", "within the stages", "before, between and after", "stages", "again, nothing changed"]
        return {
            "table": table(head, lines),
            "bare": spread([bare["whole_s"] for bare, _ in rounds], 1, " s"),
            "added": spread(added, 1, " s"),
            "added_within": spread(within, 1, " s"),
            "added_outside": spread(outside, 1, " s"),
            "added_share": spread(shares, 0, " %"),
            "added_to_an_hour": spread([100 * seconds / HOUR for seconds in added], 1, " %"),
        }


def _line(rows: Sequence[Row]) -> list[str]:
    again = [row["again_s"] for row in rows if row.get("again_s") is not None]
    return [
        spread([row["whole_s"] for row in rows], 1, " s"),
        spread([row["within_s"] for row in rows], 1, " s"),
        spread([row["whole_s"] - row["within_s"] for row in rows], 1, " s"),
        spread([row["stages"] for row in rows], 0),
        spread(again, 1, " s"),
    ]


def clocked(folder: Path) -> dict[str, str]:
    """Variables that let every stage add its seconds to a file of ``folder``."""
    (folder / "clock").mkdir()
    (folder / "clock" / "sitecustomize.py").write_text(CLOCK, encoding="utf-8")
    return {
        "PYTHONPATH": os.pathsep.join([str(folder / "clock"), str(ROOT)]),
        "EVENKEEL_BENCH_CLOCK": str(folder / "seconds.txt"),
    }


def bare(folder: Path, settings: Settings, env: dict[str, str], scale: Scale) -> Row:
    """The stages one after the other, each a process, as any line of commands would start them."""
    (folder / "params.yaml").write_text(dump(settings), encoding="utf-8")
    stages = list(wanted(settings))[: 1 if scale == "smoke" else None]
    began = time.perf_counter()
    for stage in stages:
        command = [sys.executable, "-m", "components", stage]
        ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        allowed(ended.returncode, stage, ended.stderr)
    return {"whole_s": time.perf_counter() - began}


def dvc(folder: Path, settings: Settings, env: dict[str, str], scale: Scale) -> Row:
    """`dvc repro` in a clone of the project, and once more."""
    project = folder / "project"
    project.mkdir()
    copy_project(project)
    (project / "params.yaml").write_text(dump(settings), encoding="utf-8")
    commit_all(project)

    def repro() -> float:
        began = time.perf_counter()
        command = [sys.executable, "-m", "dvc", "repro", "--keep-going"]
        ended = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)
        allowed(0 if (project / "out" / "evaluation.json").exists() else ended.returncode, "dvc repro", ended.stderr)
        return time.perf_counter() - began

    return {"whole_s": repro(), "again_s": repro()}


def prefect(folder: Path, settings: Settings, env: dict[str, str], scale: Scale) -> Row:
    """A run of the deployment, from the trigger to its end, on a server that has settled."""
    from tests.served.service import Service

    project = folder / "project"
    project.mkdir()
    commit_all(copy_project(project))
    clock = {name: env[name] for name in ("PYTHONPATH", "EVENKEEL_BENCH_CLOCK")}
    with Service(project, **clock) as service:
        time.sleep(10)
        triggered = time.time()
        run = service.trigger("post-training", overrides=SHORT)
        ended = service.wait(run, seconds=600, poll=POLL)
        completed(ended["state_type"], lambda: service.log("worker"))
    return {"whole_s": datetime.fromisoformat(ended["end_time"]).timestamp() - triggered, "state": ended["state_type"]}


def completed(state: str, log: Callable[[], str]) -> None:
    """A run that failed, crashed or was cancelled has done less than the other arms."""
    if state != "COMPLETED":
        raise RuntimeError(f"the flow run ended as {state}: {log()[-3000:]}")


def allowed(code: int, what: str, said: str) -> None:
    """0, or 3: everything worked and the answer is no, as it may well be of so short a training."""
    if code not in (0, 3):
        raise RuntimeError(f"{what} ended with {code}: {said[-800:]}")


RUNS: dict[str, Callable[[Path, Settings, dict[str, str], Scale], Row]] = {"bare": bare, "dvc": dvc, "prefect": prefect}
