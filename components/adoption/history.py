"""The log of another trainer, as the records of a run of ours and what the health rules say of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from components.config.judgement import RuleSettings
from components.config.training import Adopted
from components.health.other_runs import judge_other
from components.health.readers import read_log
from components.health.readers.names import names_from
from components.health.records import NOT_FINITE
from components.types import StepRecord, Verdict


@dataclass(frozen=True)
class History:
    """What a log shows of a training."""

    trainer: str
    format: str
    remarks: Sequence[str]
    """What was not as it should be in the log."""
    records: Sequence[StepRecord]
    verdicts: Sequence[Verdict]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The records as a run of ours stores them, each with the verdicts of its step."""
        rows = [record.to_dict() for record in self.records]
        for row in rows:
            row["notes"]["verdicts"] = [one.to_dict() for one in self.verdicts if one.step == row["step"]]
        return rows


def adopt_log(adopted: Adopted, rules: dict[str, RuleSettings]) -> History:
    """Read the log and judge it by ``rules``.

    Raises:
        InputError: as `components.health.readers.read_log`.
    """
    names = None if adopted.names is None else names_from(adopted.names, "train.adopted.names")
    log = read_log(adopted.log.path, adopted.log.format, names)
    records = [_finite(record) for record in log.records]
    return History(log.trainer, log.format, log.remarks, records, judge_other(rules, records))


def _finite(record: StepRecord) -> StepRecord:
    """The record with its finite signals; the names of the others are a note, which the gate reads."""
    odd = sorted(name for name, value in record.signals.items() if not math.isfinite(value))
    kept = {name: value for name, value in record.signals.items() if name not in odd}
    notes = {NOT_FINITE: odd} if odd else {}
    return replace(record, signals=kept, notes=notes)
