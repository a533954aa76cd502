"""When data are refused as a whole: too many bad rows, or a split without any."""

from __future__ import annotations

import os
from pathlib import Path

from components.config.data import DataSettings
from components.data.admission import Refused, place
from components.data.codes import REASONS
from components.data.splits import SPLITS
from components.data.summary import Tally
from components.errors import InputError
from components.files import os_errors

SHOWN = 5


def check_limits(tally: Tally, settings: DataSettings, quarantine: Path, kept: Path) -> None:
    """Refuse data of which too much is bad, or that leaves a split empty.

    Raises:
        InputError: with the counts, the first bad rows, and the file that holds all of them: ``quarantine``, which is
            moved to ``kept`` first, also for an empty split.
    """
    refused, rows, limit = tally.quarantined, tally.rows, settings.validation.max_quarantined
    if refused > limit * rows:
        keep(quarantine, kept)
        counts = ", ".join(f"{code} {count:,}" for code, count in tally.codes.most_common())
        raise InputError(
            f"{refused} of {rows} rows ({refused / rows:.1%}) do not pass validation; "
            f"data.validation.max_quarantined allows {limit:.1%}\n{_examples(tally)}\n  reasons: {counts}",
            where=kept,
            how=f"{REASONS[tally.codes.most_common(1)[0][0]]}; the file names every row and reason",
        )
    for split in SPLITS:
        if not tally.splits[split] and getattr(settings.splits, split) > 0:
            rest = keep(quarantine, kept) if refused else ""
            raise InputError(
                f"no row of {rows} falls into the {split} split",
                where=f"data.splits.{split}",
                how=f"give the data more rows, or the split a larger share{rest}",
            )


def keep(quarantine: Path, kept: Path) -> str:
    """Move the quarantine out of the folder that is deleted with refused data; a sentence with its new place."""
    with os_errors("write", kept):
        kept.parent.mkdir(parents=True, exist_ok=True)
        os.replace(quarantine, kept)
    return f"; {kept} holds the rows in quarantine"


def _examples(tally: Tally) -> str:
    lines = [_example(row) for row in tally.quarantine[:SHOWN]]
    if tally.quarantined > SHOWN:
        lines.append(f"  - and {tally.quarantined - SHOWN} more")
    return "\n".join(lines)


def _example(row: Refused) -> str:
    return f"  - {place(row.candidate)}: {'; '.join(row.reasons)}"
