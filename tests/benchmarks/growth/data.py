"""The data stage: rows of about 200 characters, near enough to a published data set; none repeats another."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

from tests.benchmarks.growth.curve import Cost, Curve
from tests.benchmarks.growth.measures import cpu_s, peak
from tests.benchmarks.section import Row

WORDS = (
    "apples", "boxes", "train", "river", "market", "teacher", "bottle", "garden", "ticket", "school", "winter", "paper",
    "horse", "kitchen", "mountain", "letter", "morning", "bicycle", "window", "village", "doctor", "button", "carpet",
    "island", "engine", "pocket", "blanket", "silver",
)  # fmt: skip


def write_rows(path: Path, rows: int) -> None:
    rng = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(rows):
            a, b = rng.randrange(10**6), rng.randrange(10**6)
            story = " ".join(rng.choice(WORDS) for _ in range(24))
            question = f"The {story} has {a} of one kind and {b} of another. How many are there?"
            file.write(json.dumps({"question": question, "answer": f"{a}+{b}={a + b} #{a + b}"}) + "\n")


def measure(size: int, folder: Path) -> Row:
    """Of the stage as it is run, verifier and all; what a process pays for its imports is left out."""
    from components.config import Settings
    from components.layout import Layout
    from components.stages.data import run

    root = folder / f"data-{size}"
    root.mkdir(exist_ok=True)
    os.environ["EVENKEEL_PROGRESS"] = str(root / "progress")
    write_rows(root / "rows.jsonl", size)
    source = {"kind": "jsonl", "path": str(root / "rows.jsonl"), "answer_pattern": "#(.+)$"}
    settings, layout = Settings.model_validate({"data": {"source": source}}), Layout(root)
    with peak() as memory:
        seconds = cpu_s(lambda: run(settings, layout))
    found = json.loads(layout.validation.read_text("utf-8"))
    if found["quarantined"] or found["rows"] != size:
        raise ValueError(
            f"{found['quarantined']} of {found['rows']} rows in quarantine: it is other work that was timed"
        )
    return {"stage_s": seconds, "stage_mb": memory.mb, "rows_per_s": size / seconds}


CURVE = Curve(
    "prompts", "data stage", (10**3, 10**4, 10**5, 10**6), 100, measure,
    (Cost("stage_s", "rows validated and written", floor=2.0), Cost("stage_mb", "peak memory")),
)  # fmt: skip
