"""What the stages of a run left behind, as the page sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from components.config import Settings
from components.config.canaries import RequiredCanary
from components.config.promotion import Action
from components.health.responses import Ledger
from components.types import StepRecord, Verdict

Part = dict[str, Any]
DISAGREEMENTS_SHOWN = 20


@dataclass(frozen=True)
class Missing:
    """An output that is not there, and why. ``part`` is a field of `Run`."""

    part: str
    title: str
    path: str
    reason: str


@dataclass(frozen=True)
class Run:
    """The outputs of one run. None stands for a file that does not exist; formats are those of the stages."""

    settings: Settings
    validation: Part | None
    sft: Part | None
    audit: Part | None
    admission: Part | None
    triage: Part | None
    clusters: Part | None
    records: list[StepRecord] | None
    verdicts: list[Verdict] | None
    ledger: Ledger | None
    train: Part | None
    evaluation: Part | None
    samples: list[Part] | None
    gate: Part | None
    validation_page: str | None
    """Link to the data validation page, relative to the report."""
    audit_page: str | None
    """The same for the verifier's audit."""
    missing: tuple[Missing, ...]
    canaries: Part | None = None
    """`out/canaries.json`. This part and those below may be absent without leaving the page incomplete."""
    lineage: Part | None = None
    """`lineage.json`, kept with the evidence of a candidate: commit, inputs, digests."""
    origin: Part | None = None
    """What the candidate's record says of it: the run, and who started it."""
    comparison: Part | None = None
    """With the present champion, where it is newer than the run's own evaluation; keys as `out/evaluation.json`'s."""
    judgement: Part | None = None
    """The gate by the project's policy, where approval is requested; the run's own `gate` is by the run's settings."""
    required: Mapping[str, RequiredCanary] | None = None
    """The probe sets that this judgement requires; None: not known, or as the run's settings have it."""
    signed: frozenset[Action] | None = None
    """What the project's policy counts only with a signature; None: not known here."""
    config: str | None = None
    """The configuration that names the registry to decide in; None: the default one, or not known."""
    decided: Part | None = None
    """What came of it where that is known: a promotion record's ``outcome``, ``by``, ``reason``, ``at`` and ``number``,
    ``present``, whether it is the champion now, and ``problem``, why it cannot be shown to be approved, "" where it can
    be."""
    champion: Part | None = None
    """The champion that it is compared with: the present one, or that of when it was decided. ``digest``, and of its
    run ``params`` (the content of its params.yaml) and ``lineage``."""
    another: str | None = None
    """Digest, or "unknown", of a champion that the run measured and the page does not compare with: its figures are
    left out, see `components.report.comparison`."""

    @property
    def name(self) -> str:
        """The run's id where it is on record, else what its settings call it."""
        return str(dig(self.origin, "run") or dig(self.lineage, "run") or self.settings.name)

    @property
    def judged(self) -> Part | None:
        """The gate's answer that counts: by the project's policy, or else the run's own."""
        return self.judgement or self.gate

    @property
    def measured(self) -> Part | None:
        """The evaluation, with the newest comparison with the champion laid over it."""
        return self.evaluation if self.comparison is None else {**(self.evaluation or {}), **self.comparison}

    @property
    def untrusted(self) -> bool:
        """The verifier failed its audit and no one overrode that."""
        return bool(dig(self.audit, "verdict") == "fail" and not self.audit_override)

    @property
    def audit_override(self) -> str:
        """The reason for training in spite of a failed audit, or an empty string."""
        return self._in_spite_of(self.audit, "fail", "audit_override", self.settings.audit.override)

    @property
    def refused(self) -> bool:
        """Triage refused the checkpoint and no one overrode it."""
        return bool(dig(self.triage, "verdict") == "refuse" and not self.override)

    @property
    def override(self) -> str:
        """The reason for training in spite of a refusal, or an empty string."""
        return self._in_spite_of(self.triage, "refuse", "override", self.settings.triage.override)

    def _in_spite_of(self, part: Part | None, verdict: str, recorded: str, configured: str) -> str:
        return str(dig(self.train, recorded) or configured).strip() if dig(part, "verdict") == verdict else ""

    @property
    def disagreements(self) -> list[Part]:
        """Completions that the two verifiers judged differently, newest first."""
        records = reversed(self.records or [])
        rows = ({"step": record.step, **row} for record in records for row in record.notes.get("disagreements", ()))
        return list(islice(rows, DISAGREEMENTS_SHOWN))

    @property
    def stopped(self) -> bool:
        """Training ended before its last step."""
        return bool(dig(self.train, "outcome") == "stopped")

    @property
    def digests(self) -> dict[str, str]:
        """Stage -> sha256 of the trained checkpoint as that stage recorded it, in the order of the stages."""
        parts = {"train": self.train, "evaluate": self.evaluation, "gate": self.gate}
        recorded = {stage: dig(part, "checkpoint_sha256") for stage, part in parts.items()}
        return {stage: str(digest) for stage, digest in recorded.items() if digest}

    @property
    def digest(self) -> str | None:
        """sha256 of the checkpoint that the page is about, as the last stage that saw it recorded it."""
        return next(reversed(self.digests.values()), None)


def dig(part: Any, *keys: str) -> Any:
    """The value under nested ``keys``, or None where the part or any key is absent."""
    for key in keys:
        if not isinstance(part, Mapping) or key not in part:
            return None
        part = part[key]
    return part
