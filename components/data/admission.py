"""Which candidates become prompts, and what happens to the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.config.data import DataSettings, SplitSettings
from components.data.candidates import Candidate
from components.data.splits import SPLITS, assign
from components.data.validation import ACCEPTED, Finding, Row, validate
from components.errors import InputError
from components.files import write_jsonl
from components.rewards.sandbox import Sandbox
from components.types import Prompt, Split

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Refused:
    """A row in quarantine, with every reason."""

    candidate: Candidate
    reasons: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"row": dict(self.candidate.row), "line": self.candidate.line, "reasons": list(self.reasons)}


@dataclass(frozen=True, slots=True)
class Admission:
    """What validation found in all rows, and how they were divided."""

    findings: Sequence[Finding]
    admitted: Sequence[Row]
    quarantine: Sequence[Refused]

    @property
    def prompts(self) -> list[Prompt]:
        """All admitted prompts, in the order of the source."""
        return [row.prompt for row in self.admitted]

    @property
    def splits(self) -> dict[Split, list[Prompt]]:
        """The admitted prompts of every split, in the order of the source."""
        return {split: [row.prompt for row in self.admitted if row.split == split] for split in SPLITS}

    @property
    def rows(self) -> int:
        """Rows read, admitted or not."""
        return len(self.admitted) + len(self.quarantine)

    def summary(self) -> dict[str, Any]:
        """The content of `validation.json`. Expectations are counted over all rows read.

        ``success`` is about the admitted rows: the stage validates them again and ends with an error otherwise.
        """
        return {
            "rows": self.rows,
            "quarantined": len(self.quarantine),
            "success": True,
            "splits": {name: len(prompts) for name, prompts in self.splits.items()},
            "families": dict(sorted(Counter(prompt.family for prompt in self.prompts).items())),
            "expectations": [finding.to_dict() for finding in self.findings],
        }


def judge_solutions(candidates: Sequence[Candidate], sandbox: Sandbox, shares: SplitSettings) -> list[Row]:
    """Ask the run's own verifier about every reference solution: what it refuses, no policy could get right."""
    answered = [c.prompt for c in candidates if c.prompt.answer]
    scores = iter(sandbox.judge([(prompt, prompt.solution) for prompt in answered]))
    rows = []
    for candidate in candidates:
        verdict = None
        if candidate.prompt.answer:
            score = next(scores)
            verdict = score.unscorable or (ACCEPTED if score.accuracy == 1 else f"accuracy {score.accuracy:g}")
        rows.append(Row(candidate.prompt, assign(candidate.prompt.text, shares), verdict))
    return rows


def admit(candidates: Sequence[Candidate], rows: Sequence[Row], findings: Sequence[Finding]) -> Admission:
    """Divide the candidates by what validation found.

    Of rows that share an id or a question the first that is otherwise sound is admitted.
    """
    admitted: list[Row] = []
    quarantine: list[Refused] = []
    taken: dict[str, set[Any]] = {finding.rule.column: set() for finding in findings if finding.rule.unique}
    for index, (candidate, row) in enumerate(zip(candidates, rows, strict=True)):
        broken = [(finding.rule, finding.broken[index]) for finding in findings if index in finding.broken]
        reasons = [
            rule.reason.format(value=value) for rule, value in broken if not rule.unique or value in taken[rule.column]
        ]
        if reasons:
            quarantine.append(Refused(candidate, tuple(reasons)))
            continue
        for rule, value in broken:
            taken[rule.column].add(value)
        admitted.append(row)
    return Admission(findings, admitted, quarantine)


def check_limits(admission: Admission, settings: DataSettings, quarantine: Path) -> None:
    """Refuse data of which too much is bad, or that leaves a split empty.

    Raises:
        InputError: with the counts, the first bad rows, and the file that holds all of them (it is written first).
    """
    refused, limit = len(admission.quarantine), settings.validation.max_quarantined
    if refused > limit * admission.rows:
        write_jsonl(quarantine, [row.to_dict() for row in admission.quarantine])
        raise InputError(
            f"{refused} of {admission.rows} rows ({refused / admission.rows:.1%}) do not pass validation; "
            f"data.validation.max_quarantined allows {limit:.1%}\n" + _examples(admission.quarantine),
            where=quarantine,
            how="mend those rows or the settings under data.source and reward.verifier; the file names every reason",
        )
    for split, prompts in admission.splits.items():
        if not prompts and getattr(settings.splits, split) > 0:
            raise InputError(
                f"no row of {admission.rows} falls into the {split} split",
                where=f"data.splits.{split}",
                how="give the data more rows, or the split a larger share",
            )


def check_admitted(admission: Admission, settings: DataSettings) -> None:
    """Validate what was admitted once more, as a whole.

    Raises:
        RuntimeError: a rule is still broken, which is a fault of this program.
    """
    for finding in validate(admission.admitted, settings.validation):
        if finding.broken:
            raise RuntimeError(f"admitted rows break {finding.rule.name!r}: {len(finding.broken)} rows")


def _examples(quarantine: Sequence[Refused]) -> str:
    lines = [
        f"  - {'row' if row.candidate.line is None else f'line {row.candidate.line}'}: {'; '.join(row.reasons)}"
        for row in quarantine[:SHOWN]
    ]
    if len(quarantine) > SHOWN:
        lines.append(f"  - and {len(quarantine) - SHOWN} more")
    return "\n".join(lines)
