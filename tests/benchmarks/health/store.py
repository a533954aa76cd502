"""What is kept of a run: one compressed JSON file each, with equal bytes for equal runs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import write_bytes
from components.types import StepRecord

DIGITS = 4


@dataclass(frozen=True)
class Run:
    """One run.

    ``held_out`` are pairs of finished steps and accuracy under the true verifier; ``final`` is that of the checkpoint
    which the run ended with. ``begins`` is the step at which the fault is there first (0 for healthy runs), ``crashed``
    why the run ended early, or "". ``progress`` are the steps behind the final checkpoint; ``records`` is longer when
    steps were lost. ``responses`` are the lines of the ledger, where rules acted; ``families`` is ``held_out`` by
    family of prompts.
    """

    condition: str
    seed: int
    sft_seed: int
    begins: int
    steps: int
    records: list[StepRecord]
    held_out: list[tuple[int, float]]
    final: float
    progress: int
    crashed: str = ""
    stopped_by: str = ""
    arm: str = "plain"
    responses: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    families: list[tuple[int, dict[str, float]]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.condition}-{self.seed:02d}"


def file_of(folder: Path, condition: str, seed: int) -> Path:
    return folder / f"{condition}-{seed:02d}.json.gz"


def save(folder: Path, run: Run) -> None:
    """Write the run; signals are columns, rounded to `DIGITS` digits."""
    names = sorted({name for record in run.records for name in record.signals})
    tree = asdict(run) | {
        "records": {
            "step": [record.step for record in run.records],
            "signals": {name: [_short(record.signals.get(name)) for record in run.records] for name in names},
            "notes": {str(r.step): r.notes for r in run.records if r.notes},
        },
        "held_out": [[step, _short(value)] for step, value in run.held_out],
        "seconds": round(run.seconds, 1),
    }
    text = json.dumps(tree, sort_keys=True, separators=(",", ":"), allow_nan=False)
    write_bytes(file_of(folder, run.condition, run.seed), gzip.compress(text.encode(), mtime=0))


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def read(path: Path) -> Run:
    """Read what `save` wrote.

    Raises:
        InputError: the file is not such a run.
    """
    try:
        tree = json.loads(gzip.decompress(path.read_bytes()))
        columns = tree.pop("records")
        notes = columns["notes"]
        records = [
            StepRecord(
                step,
                {name: values[row] for name, values in columns["signals"].items() if values[row] is not None},
                notes.get(str(step), {}),
            )
            for row, step in enumerate(columns["step"])
        ]
        held_out = [(int(step), float(value)) for step, value in tree.pop("held_out")]
        return Run(**tree, records=records, held_out=held_out)
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"not a stored run: {error}", where=path, how="delete the file; it is made again") from error


def read_all(folder: Path, seeds: Sequence[int] | None = None) -> list[Run]:
    """Every stored run of a folder, in order of the names."""
    return list(_wanted(folder, seeds))


def _wanted(folder: Path, seeds: Sequence[int] | None) -> Iterator[Run]:
    for path in sorted(folder.glob("*.json.gz")):
        run = read(path)
        if seeds is None or run.seed in seeds:
            yield run
