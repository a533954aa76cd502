"""The health signals of a running training, as a table of its latest steps.

Read from the log that the stage appends to, `.state/train/records.jsonl`, and from the ledger next to it; `out/train`
has them only when the stage has ended.
"""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.health.responses import Ledger, read_ledger
from components.health.summaries import ledger_rows
from components.layout import Layout

STEPS = 20
"""Of the table."""
COLUMNS = (
    ("Accuracy", "accuracy", "{:.1%}"),
    ("Dev pass@1", "dev_pass_at_1", "{:.1%}"),
    ("Entropy", "entropy", "{:.3f}"),
    ("KL", "kl_ref", "{:.4f}"),
    ("Zero var.", "zero_variance_share", "{:.0%}"),
    ("Grad. norm", "grad_norm", "{:.3f}"),
    ("LR", "lr", "{:.3g}"),
)
"""Head, signal and format; short, so that a screen has room for all. Entropy and KL (to the SFT checkpoint) are in nats
per token; what a step did not measure is left empty."""


class GrowingFile:
    """The objects of a JSON-lines file that another process appends to, each given once.

    A file that was replaced or truncated, as a resumed run does with its log, is returned again from its beginning.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: tuple[int, int] | None = None
        self._offset = 0

    def read(self) -> tuple[list[dict[str, Any]], bool]:
        """What was added since the last look, and whether it is to replace what was given before."""
        try:
            with self._path.open("rb") as file:
                found = self._path.stat()
                identity = (found.st_dev, found.st_ino)
                replaced = identity != self._file or found.st_size < self._offset
                self._file, self._offset = identity, 0 if replaced else self._offset
                file.seek(self._offset)
                text = file.read()
        except OSError:
            return [], False  # not there yet, or not any more
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        return [row for line in complete.splitlines() if (row := _parse(line)) is not None], replaced


def _parse(line: bytes) -> dict[str, Any] | None:
    """One object; None for an incomplete line of a killed writer."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


class SignalTable:
    """The latest steps of the training in a workspace; `update` takes in what was added."""

    def __init__(self, layout: Layout) -> None:
        self._records = GrowingFile(layout.state / "train" / layout.records.name)
        self._ledger_path = layout.state / "train" / layout.ledger.name
        self._latest: deque[Mapping[str, Any]] = deque(maxlen=STEPS)
        self._ledger = Ledger()

    def update(self) -> bool:
        """Whether there is anything to show."""
        rows, replaced = self._records.read()
        if replaced:
            self._latest.clear()
        self._latest.extend(rows)
        with contextlib.suppress(InputError):  # it is being written to: the next look sees it whole
            self._ledger = read_ledger(self._ledger_path) if self._ledger_path.exists() else Ledger()
        return bool(self._latest)

    def rows(self) -> list[dict[str, str]]:
        """A row a step, the newest first."""
        responses: dict[int, list[str]] = {}
        for response in ledger_rows(self._ledger):
            responses.setdefault(response.step, []).append("; ".join(response.changed) or response.level)
        return [_row(record, responses) for record in reversed(self._latest)]


def _row(record: Mapping[str, Any], responses: Mapping[int, list[str]]) -> dict[str, str]:
    signals, notes = record.get("signals", {}), record.get("notes", {})
    figures = {head: text.format(signals[name]) if name in signals else "" for head, name, text in COLUMNS}
    said = [f"{verdict['rule']}: {verdict['level']}" for verdict in notes.get("verdicts", ())]
    step = record.get("step")
    done = responses.get(step, []) if isinstance(step, int) else []
    return {"Step": str(step), **figures, "Verdicts": ", ".join(said), "Acted": ", ".join(done)}
