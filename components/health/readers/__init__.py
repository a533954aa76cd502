"""Logs of other trainers, as the records that health rules read. Files are only read; nothing in them is executed.

- `read_log`, `Log` — a file, its format found or named, as `StepRecord`s and remarks on what was not as it should be,
  with a mapping to begin with for names that were not read
- `READERS` — how a line of each trainer becomes the numbers of a step; `formats` has them
- `names` — which signal of ours is which metric of theirs: a mapping file in `configs/health/names`
- `lines` — the text of a log, the last line of which may be torn, and what counts as a number in it
- `steps` — the rows of one step brought together, resumed runs included

A new trainer is a reader among `formats`, an entry in `READERS`, and a mapping file of its name.
"""

from __future__ import annotations

from components.health.readers.log import READERS, Log, read_log
from components.health.readers.names import NAMES_FOLDER, Names, load_names

__all__ = ["NAMES_FOLDER", "READERS", "Log", "Names", "load_names", "read_log"]
