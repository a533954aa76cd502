"""Measures the cells of a section that are not measured yet, each in a process of its own."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from components.errors import InputError
from components.files import read_json, write_json
from tests.benchmarks.ending import run_to_end
from tests.benchmarks.measured_code import Code
from tests.benchmarks.results import Results
from tests.benchmarks.section import Row, Scale, Section
from tests.benchmarks.work import Work
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
    if len(results.rows) == len(cells):
        print(f"{name}: measured on this machine; FORCE=1 (--force) measures it again", flush=True)
        return results
    work = Work(folder, scale, section.resumes)
    for number, cell in enumerate(cells, start=1):
        if cell in results.rows:
            continue
        print(f"{name} {number}/{len(cells)}  {cell} ...", end=" ", flush=True)
        row = _in_a_process(name, section, cell, scale, work)
        print(f"{row['took_s']:.0f} s", flush=True)
        found = {**results.rows, cell: row}
        results.rows = {one: found[one] for one in cells if one in found}
        results.write(path)
    work.ended()
    return results


def _in_a_process(name: str, section: Section, cell: str, scale: Scale, work: Work) -> Row:
    code, began = Code.now(), time.monotonic()
    began -= work.begin(cell, code)
    out, log = work.folder / "cell.json", _log(name)
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.benchmarks", "cell", name, cell, "--scale", scale]
    arguments = ["--folder", str(work.folder), "--out", str(out)]
    ended: int | str = ""
    try:
        ended = run_to_end([*command, *arguments], ROOT, {**os.environ, **QUIET}, log, section.limit)
    finally:
        seconds, done = time.monotonic() - began, ended == 0 and out.exists()
        if not done:
            print(f"not measured; {log} has what it printed", flush=True)
            work.interrupted(cell, seconds)
    if not done:
        tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-15:])
        how = f"read {log}; what is measured stays"
        raise InputError(f"{cell}: {ended}\n{tail}", where=f"section {name}", how=how)
    log.unlink()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {**read_json(out), "date": now, "commit": code.until(Code.now()), "took_s": round(seconds, 1)}


def _log(name: str) -> Path:
    """What a cell prints; outside of its folder, which may be a temporary one, and removed if all is well."""
    file, path = tempfile.mkstemp(prefix=f"evenkeel-bench-{name}-", suffix=".log")
    os.close(file)
    return Path(path)


def measure_cell(section: Section, cell: str, scale: Scale, folder: Path, out: Path) -> None:
    """One cell, in this process; its row goes to ``out``."""
    if cell not in section.cells(scale):
        raise InputError(f"there is no cell {cell!r}", where=section.title, how=f"one of {list(section.cells(scale))}")
    row = section.measure(cell, scale, folder)
    write_json(out, json.loads(json.dumps(row, allow_nan=False)))
