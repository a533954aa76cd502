"""Measures the cells of a section that are not measured yet, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from components.errors import InputError
from components.files import read_json, write_json
from tests.benchmarks.results import Results
from tests.benchmarks.section import Row, Scale, Section
from tests.code_graph import ROOT

QUIET = {
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DVC_NO_ANALYTICS": "1",
    "GX_ANALYTICS_ENABLED": "false",
}


def measure_section(name: str, section: Section, scale: Scale, path: Path, folder: Path) -> Results:
    """Every cell that ``path`` does not hold yet. A cell that fails ends it; what was measured before is kept.

    Raises:
        InputError: A cell failed, with the end of what it printed.
    """
    results, cells = Results.resumed(path, name, scale), section.cells(scale)
    results.rows = {cell: results.rows[cell] for cell in cells if cell in results.rows}
    folder.mkdir(parents=True, exist_ok=True)
    if len(results.rows) == len(cells):
        print(f"{name}: measured on this machine; ANEW=1 (--anew) measures it again", flush=True)
    for number, cell in enumerate(cells, start=1):
        if cell in results.rows:
            continue
        print(f"{name} {number}/{len(cells)}  {cell} ...", end=" ", flush=True)
        row = _in_a_process(name, section, cell, scale, folder)
        print(f"{row['took_s']:.0f} s", flush=True)
        found = {**results.rows, cell: row}
        results.rows = {one: found[one] for one in cells if one in found}
        results.write(path)
    return results


def _in_a_process(name: str, section: Section, cell: str, scale: Scale, folder: Path) -> Row:
    out, log, began = folder / "cell.json", folder / "cell.log", time.monotonic()
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.benchmarks", "cell", name, cell, "--scale", scale]
    with log.open("wb") as file:
        try:
            ended: int | str = subprocess.run(
                [*command, "--folder", str(folder), "--out", str(out)],
                cwd=ROOT,
                env={**os.environ, **QUIET},
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=section.limit,
            ).returncode
        except subprocess.TimeoutExpired:
            ended = f"no end within {section.limit:.0f} s"
    if ended != 0 or not out.exists():
        tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-15:])
        how = f"read {log}; what is measured stays"
        raise InputError(f"{cell}: {ended}\n{tail}", where=f"section {name}", how=how)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {**read_json(out), "date": now, "commit": _commit(), "took_s": round(time.monotonic() - began, 1)}


def _commit() -> str:
    """Short id of the commit, with + where code that is measured differs from it; "" without Git."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "components", "flows", "tests/benchmarks"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found + ("+" if changed else "")


def measure_cell(section: Section, cell: str, scale: Scale, folder: Path, out: Path) -> None:
    """One cell, in this process; its row goes to ``out``."""
    if cell not in section.cells(scale):
        raise InputError(f"there is no cell {cell!r}", where=section.title, how=f"one of {list(section.cells(scale))}")
    row = section.measure(cell, scale, folder)
    write_json(out, json.loads(json.dumps(row, allow_nan=False)))
