"""Where each stage reads and writes inside a workspace. `dvc.yaml` repeats these paths; a test compares them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from components.types import Split

EVALUATIONS_VARIABLE = "EVENKEEL_EVALUATIONS"
"""Names the folder of evaluations that the runs of a project share."""


class _Below:
    """A path below the root of a layout."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __get__(self, layout: Layout, owner: type[Layout]) -> Path:
        return layout.root / self._path


@dataclass(frozen=True)
class Layout:
    """Paths of one workspace, relative to ``root`` (the folder that holds `dvc.yaml`)."""

    root: Path = Path()

    params = _Below("params.yaml")
    """The resolved settings."""
    lock = _Below("dvc.lock")
    """What DVC recorded of every stage: digests of what it read and of what it wrote."""
    lineage = _Below("lineage.json")
    """Where a candidate comes from; only with the evidence of one."""
    out = _Below("out")

    data = _Below("out/data")
    """The splits (`sft.jsonl`, ...), `quarantine.jsonl`, `validation.html` and `consistency.json`."""
    consistency = _Below("out/data/consistency.json")
    """Weights of the embedded consistency classifier; null where the settings use none."""
    validation = _Below("out/validation.json")

    audit = _Below("out/audit.json")
    audit_page = _Below("out/audit.html")
    audit_timing = _Below(".state/audit/timing.json")
    """Seconds, which no two runs share; so it is not an output."""

    sft = _Below("out/sft")
    """`checkpoint/` (a Hugging Face folder) and `log.jsonl`."""
    sft_checkpoint = _Below("out/sft/checkpoint")
    sft_metrics = _Below("out/sft.json")

    admission = _Below("out/admission.json")
    admission_flags = _Below("out/admission.jsonl")
    """One line a training prompt that a person should look at: why, and whether it is withheld until then."""
    base_answers = _Below("out/base.jsonl")
    """What the label audit sampled from the base policy, one group a line; empty where nothing was audited."""

    triage = _Below("out/triage.json")
    """The verdict with its figures, and the measured success of the prompts that were sampled."""

    clusters = _Below("out/clusters.jsonl")
    """One line a training prompt: id, cluster, rank within the cluster (0 is easiest), nll."""
    clusters_metrics = _Below("out/clusters.json")
    """The clusters' sizes, what was merged, and how their order agrees with measured success."""

    train = _Below("out/train")
    """`checkpoint/` (the policy as training left it), `records.jsonl`, `verdicts.jsonl`, `ledger.jsonl` and
    `pairs.jsonl`."""
    train_checkpoint = _Below("out/train/checkpoint")
    records = _Below("out/train/records.jsonl")
    ledger = _Below("out/train/ledger.jsonl")
    """What the monitor did about what it saw, and what came of it; one JSON object a line."""
    pairs = _Below("out/train/pairs.jsonl")
    """Preference pairs of the run's own groups, one JSON object a line."""
    curves = _Below("out/curves.csv")
    train_metrics = _Below("out/train.json")

    evaluation = _Below("out/evaluation.json")
    canaries = _Below("out/canaries.json")
    """Probe sets before and after training: figures, falls, limits and verdicts."""
    samples = _Below("out/samples.jsonl")

    dpo = _Below("out/dpo")
    """`checkpoint/` and `log.jsonl`; the log alone, and empty, when the settings have no step."""
    dpo_checkpoint = _Below("out/dpo/checkpoint")
    dpo_metrics = _Below("out/dpo.json")

    gate = _Below("out/gate.json")
    report = _Below("out/report.html")
    verdict = _Below("out/verdict.md")
    """The run's health in plain words, a section of the report too."""

    logs = _Below("logs")
    """What stages and the processes that they start have printed, a file each."""
    state = _Below(".state")
    """Resume state of unfinished stages. Not an output: DVC deletes outputs before it runs a stage."""
    evaluations = _Below(".state/evaluations")
    """Answers of checkpoints to test prompts, kept by digest: see `components.evaluation.cache`."""

    def split(self, name: Split) -> Path:
        return self.data / f"{name}.jsonl"
