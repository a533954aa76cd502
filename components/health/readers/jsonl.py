"""JSON: plain lines, an object with its step and metrics, flat or under ``data`` or ``signals``; and TRL's
`trainer_state.json`, which the Trainer writes into every checkpoint.

Entries of one step (training, then evaluation) are brought together. A loss that was NaN is not to be seen: by
default the Trainer logs the mean of the losses before it (``logging_nan_inf_filter``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import read_text
from components.health.readers.lines import as_step, json_object
from components.health.readers.steps import Row

STEP_NAMES = ("step", "_step", "global_step", "train/global_step", "train/step", "rollout/step")
OF_ALL = "global_step/max_steps"
"""ms-swift's step: ``12/400``."""
NESTED = ("signals", "data")


def row(line: str) -> Row | None:
    """The row that a line is, or None."""
    return None if (found := json_object(line)) is None else row_of(found)


def row_of(found: dict[str, Any]) -> Row | None:
    """The row that an object is: its step, and all its other values."""
    key = next((name for name in (*STEP_NAMES, OF_ALL) if name in found), None)
    step = _of_all(found[key]) if key == OF_ALL else as_step(found[key]) if key else None
    if step is None:
        return None
    inner = next((found[name] for name in NESTED if isinstance(found.get(name), dict)), None)
    if inner is None:
        return Row(step, {name: value for name, value in found.items() if name != key})
    notes = found.get("notes")
    back = as_step(notes.get("rolled_back_to")) if isinstance(notes, dict) else None
    return Row(step, inner, back, own=isinstance(found.get("signals"), dict))


def _of_all(value: Any) -> int | None:
    number = str(value).partition("/")[0]
    return as_step(int(number)) if number.isascii() and number.isdigit() and len(number) < 16 else None


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
