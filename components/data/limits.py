"""When data are refused as a whole: too many bad rows, a split without any, or what is found about the table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from components.config.data import DataSettings
from components.config.reasoning_gym import ReasoningGymSource
from components.config.sources import FileSource
from components.config.tasks import GeneratedSource
from components.data.admission import place
from components.data.codes import REASONS
from components.data.splits import SPLITS
from components.data.summary import Tally
from components.data.survey import Survey
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
    lines = [f"  - {place(row.candidate)}: {'; '.join(row.reasons)}" for row in tally.quarantine[:SHOWN]]
    if tally.quarantined > SHOWN:
        lines.append(f"  - and {tally.quarantined - SHOWN} more")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class TableFinding:
    """What was found about the table as a whole, where, and how to fix it; no row is set aside for it.

    ``level`` is pass where there is nothing to fix.
    """

    name: str
    level: Literal["pass", "warn", "fail"]
    what: str
    where: str
    how: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def table_findings(found: Survey, tally: Tally, data: DataSettings) -> list[TableFinding]:
    """Guessable answers and the spread of difficulty."""
    return [_guessable(found, data), _difficulty(tally, data)]


def _guessable(found: Survey, data: DataSettings) -> TableFinding:
    share, limit = found.guessable / found.answered if found.answered else 0.0, data.validation.max_guessable
    return TableFinding(
        "guessable answers",
        data.validation.guessable if share > limit else "pass",
        f"{share:.1%} of the answers are yes or no, a letter of A to E or a single digit, limit {limit:.1%}",
        "the answer column" if isinstance(data.source, FileSource) else "data.source",
        "ask for answers that cannot be guessed, or raise data.validation.max_guessable: a policy that guesses is "
        "rewarded without reasoning",
    )


def _difficulty(tally: Tally, data: DataSettings) -> TableFinding:
    where, how = "data.source.difficulty", "name a column with more than one level, or leave it out"
    if isinstance(data.source, FileSource) and data.source.difficulty is None:
        what = "no column of difficulty; the clusters stage ranks prompts by the policy's own surprise"
        return TableFinding("difficulty spread", "pass", what, where, "nothing needs to be done")
    if isinstance(data.source, GeneratedSource):
        where, how = "data.source.levels", "generate more than one level"
    elif isinstance(data.source, ReasoningGymSource):
        where, how = "data.source.datasets", "widen the settings that the data sets draw from"
    levels = len(tally.levels)
    what = f"{levels} levels of difficulty" if levels != 1 else "all prompts have the same level of difficulty"
    return TableFinding("difficulty spread", data.validation.difficulty if levels <= 1 else "pass", what, where, how)


def refuse_failed(findings: Sequence[TableFinding], quarantine: Path, kept: Path) -> None:
    """Raise InputError for findings of level fail; rows in ``quarantine`` are moved to ``kept`` first."""
    failed = [finding for finding in findings if finding.level == "fail"]
    if failed:
        rest = keep(quarantine, kept) if quarantine.stat().st_size else ""
        raise InputError(
            "; ".join(f"{finding.name}: {finding.what}" for finding in failed),
            where=failed[0].where,
            how=f"{failed[0].how}{rest}",
        )
