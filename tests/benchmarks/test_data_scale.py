"""Rows a second and memory of the data stage, at 100,000 rows and (EVENKEEL_FULL=1) at a million: `make bench`.

Every size runs in a process of its own, because the peak of a process never falls. The rows are word problems of about
200 characters, near enough to a published data set; none repeats another.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.code_graph import ROOT

SIZES = (100_000, 1_000_000) if os.environ.get("EVENKEEL_FULL") == "1" else (100_000,)
WORDS = (
    "apples", "boxes", "train", "river", "market", "teacher", "bottle", "garden", "ticket", "school", "winter", "paper",
    "horse", "kitchen", "mountain", "letter", "morning", "bicycle", "window", "village", "doctor", "button", "carpet",
    "island", "engine", "pocket", "blanket", "silver",
)  # fmt: skip
PROGRAM = """
import resource, sys
from pathlib import Path
from components.config import Settings
from components.layout import Layout
from components.stages.data import run
source = {"kind": "jsonl", "path": sys.argv[1], "answer_pattern": "#(.+)$"}
run(Settings.model_validate({"data": {"source": source}}), Layout(Path(sys.argv[2])))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def write_rows(path: Path, rows: int) -> None:
    rng = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(rows):
            a, b = rng.randrange(10**6), rng.randrange(10**6)
            story = " ".join(rng.choice(WORDS) for _ in range(24))
            question = f"The {story} has {a} of one kind and {b} of another. How many are there?"
            file.write(json.dumps({"question": question, "answer": f"{a}+{b}={a + b} #{a + b}"}) + "\n")


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("rows", SIZES)
def test_memory_stays_small_whatever_the_number_of_rows(tmp_path: Path, rows: int) -> None:
    write_rows(tmp_path / "rows.jsonl", rows)
    start = time.monotonic()
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "rows.jsonl"), str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "EVENKEEL_PROGRESS": str(tmp_path / "progress")},
    )  # fmt: skip
    seconds = time.monotonic() - start
    assert result.returncode == 0, result.stderr
    megabytes = int(result.stdout.split()[-1]) / 1024
    print(f"\n{rows:>9,} rows: {rows / seconds:,.0f} rows/s, peak {megabytes:,.0f} MB, {seconds:,.0f} s")
    assert json.loads((tmp_path / "out/validation.json").read_text())["quarantined"] == 0
    assert megabytes < 1200
