"""Where each stage reads and writes inside a workspace. `dvc.yaml` repeats these paths; a test compares them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from components.types import Split

EVALUATIONS_VARIABLE = "EVENKEEL_EVALUATIONS"
"""Names the folder of evaluations that the runs of a project share."""


@dataclass(frozen=True)
class Layout:
    """Paths of one workspace, relative to ``root`` (the folder that holds `dvc.yaml`)."""

    root: Path = Path()

    @property
    def params(self) -> Path:
        """The resolved settings."""
        return self.root / "params.yaml"

    @property
    def lock(self) -> Path:
        """What DVC recorded of every stage: digests of what it read and of what it wrote."""
        return self.root / "dvc.lock"

    @property
    def lineage(self) -> Path:
        """Where a candidate comes from; only with the evidence of one."""
        return self.root / "lineage.json"

    @property
    def out(self) -> Path:
        return self.root / "out"

    @property
    def data(self) -> Path:
        """The splits (`sft.jsonl`, ...), `quarantine.jsonl`, `validation.html` and `consistency.json`."""
        return self.out / "data"

    def split(self, name: Split) -> Path:
        return self.data / f"{name}.jsonl"

    @property
    def consistency(self) -> Path:
        """Weights of the embedded consistency classifier; null where the settings use none."""
        return self.data / "consistency.json"

    @property
    def validation(self) -> Path:
        return self.out / "validation.json"

    @property
    def audit(self) -> Path:
        return self.out / "audit.json"

    @property
    def audit_page(self) -> Path:
        return self.out / "audit.html"

    @property
    def audit_timing(self) -> Path:
        """Seconds, which no two runs share; so it is not an output."""
        return self.state / "audit" / "timing.json"

    @property
    def sft(self) -> Path:
        """`checkpoint/` (a Hugging Face folder) and `log.jsonl`."""
        return self.out / "sft"

    @property
    def sft_checkpoint(self) -> Path:
        return self.sft / "checkpoint"

    @property
    def sft_metrics(self) -> Path:
        return self.out / "sft.json"

    @property
    def admission(self) -> Path:
        return self.out / "admission.json"

    @property
    def admission_flags(self) -> Path:
        """One line a training prompt that a person should look at: why, and whether it is withheld until then."""
        return self.out / "admission.jsonl"

    @property
    def base_answers(self) -> Path:
        """What the label audit sampled from the base policy, one group a line; empty where nothing was audited."""
        return self.out / "base.jsonl"

    @property
    def triage(self) -> Path:
        """The verdict with its figures, and the measured success of the prompts that were sampled."""
        return self.out / "triage.json"

    @property
    def clusters(self) -> Path:
        """One line a training prompt: id, cluster, rank within the cluster (0 is easiest), nll."""
        return self.out / "clusters.jsonl"

    @property
    def clusters_metrics(self) -> Path:
        """The clusters' sizes, what was merged, and how their order agrees with measured success."""
        return self.out / "clusters.json"

    @property
    def train(self) -> Path:
        """`checkpoint/` (the policy as training left it), `records.jsonl`, `verdicts.jsonl`, `ledger.jsonl` and
        `pairs.jsonl`."""
        return self.out / "train"

    @property
    def train_checkpoint(self) -> Path:
        return self.train / "checkpoint"

    @property
    def records(self) -> Path:
        return self.train / "records.jsonl"

    @property
    def ledger(self) -> Path:
        """What the monitor did about what it saw, and what came of it; one JSON object a line."""
        return self.train / "ledger.jsonl"

    @property
    def pairs(self) -> Path:
        """Preference pairs of the run's own groups, one JSON object a line."""
        return self.train / "pairs.jsonl"

    @property
    def curves(self) -> Path:
        return self.out / "curves.csv"

    @property
    def train_metrics(self) -> Path:
        return self.out / "train.json"

    @property
    def evaluation(self) -> Path:
        return self.out / "evaluation.json"

    @property
    def canaries(self) -> Path:
        """Probe sets before and after training: figures, falls, limits and verdicts."""
        return self.out / "canaries.json"

    @property
    def samples(self) -> Path:
        return self.out / "samples.jsonl"

    @property
    def dpo(self) -> Path:
        """`checkpoint/` and `log.jsonl`; the log alone, and empty, when the settings have no step."""
        return self.out / "dpo"

    @property
    def dpo_checkpoint(self) -> Path:
        return self.dpo / "checkpoint"

    @property
    def dpo_metrics(self) -> Path:
        return self.out / "dpo.json"

    @property
    def gate(self) -> Path:
        return self.out / "gate.json"

    @property
    def report(self) -> Path:
        return self.out / "report.html"

    @property
    def verdict(self) -> Path:
        """The run's health in plain words, a section of the report too."""
        return self.out / "verdict.md"

    @property
    def logs(self) -> Path:
        """What stages and the processes that they start have printed, a file each."""
        return self.root / "logs"

    @property
    def state(self) -> Path:
        """Resume state of unfinished stages. Not an output: DVC deletes outputs before it runs a stage."""
        return self.root / ".state"

    @property
    def evaluations(self) -> Path:
        """Answers of checkpoints to test prompts, kept by digest: see `components.evaluation.cache`."""
        return self.state / "evaluations"
