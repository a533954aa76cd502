"""Were the data validated, and was not too much of them left out?"""

from __future__ import annotations

from components.config import Settings
from components.errors import InputError
from components.gate.checks.base import Answer, Check
from components.gate.evidence import Evidence


def _validated(evidence: Evidence, settings: Settings) -> Answer:
    rows, bad = evidence.number("validation", "rows"), evidence.number("validation", "quarantined")
    if not 0 <= bad <= rows:
        raise InputError(f"validation: {bad:g} of {rows:g} rows cannot be in quarantine")
    limit = settings.gate.max_quarantined
    sound = evidence.value("validation", "success") is True and rows > 0 and bad <= limit * rows
    return "pass" if sound else "fail", f"{rows:.0f} rows validated, {bad:.0f} quarantined, limit {limit:.1%}"


VALIDATED = Check(_validated, "mend the rows that out/data/quarantine.jsonl names, and run again")
