"""TRL: `trainer_state.json`, which the Trainer writes into every checkpoint, or its log entries as JSON lines.

Entries of one step (training, then evaluation) are brought together. A loss that was NaN is not to be seen: by
default the Trainer logs the mean of the losses before it (``logging_nan_inf_filter``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from components.errors import InputError
from components.files import read_text
from components.health.readers.jsonl import row_of
from components.health.readers.numbers import json_object
from components.health.readers.steps import Row

HISTORY = "log_history"


def is_document(head: str) -> bool:
    """Whether this is the beginning of a `trainer_state.json`."""
    return head.lstrip().startswith("{") and f'"{HISTORY}"' in head


def document(path: Path) -> Iterator[Row | None]:
    """Every entry of the log history; None for one that is none.

    Raises:
        InputError: the document is cut off or has no history: it is written whole, so there is nothing to save.
    """
    state = json_object(read_text(path))
    history = None if state is None else state.get(HISTORY)
    if not isinstance(history, list):
        how = "take the file of an earlier checkpoint; the Trainer writes one into each"
        raise InputError("not a whole trainer_state.json", where=path, how=how)
    return (row_of(entry) if isinstance(entry, dict) else None for entry in history)
