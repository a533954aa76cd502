"""Runs that pass the gate, a few kilobytes each, and candidates made of them, with evidence, lineage and signature."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from components.config import Settings, dump
from components.config.evaluation import ChampionSettings, EvaluationSettings
from components.config.judgement import HealthSettings, RuleSettings
from components.config.promotion import Policy, PromotionPolicy, load_policy
from components.config.training import TrainSettings
from components.files import read_json, sha256_tree, write_json, write_jsonl, write_text
from components.gate.bundle import gather
from components.gate.checks.stored import PIPELINE
from components.health.monitor import replay
from components.health.rulebook import DEFAULT_RULES, load_rules
from components.layout import Layout
from components.registry import Candidate, Store, propose
from components.registry.directory import DirectoryStore
from components.registry.keys import new_key, public_pem, read_key, write_key
from components.stages.gate import run as run_gate
from components.types import StepRecord
from flows.governance.registry import signing_key
from flows.host.git import IDENTITY, git
from flows.recording.lineage import outputs
from tests.code_graph import ROOT
from tests.fake_line.stages.work import SIGNALS, checkpoint

STEPS = 10
SETTINGS_OF_CHECKS = Settings()
RULES = load_rules(DEFAULT_RULES)
OUTS = {
    "data": ("out/data/test.jsonl", "out/validation.json"),
    "audit": ("out/audit.json",),
    "admission": ("out/admission.json",),
    "triage": ("out/triage.json",),
    "train": ("out/train", "out/train.json"),
    "evaluate": ("out/evaluation.json", "out/canaries.json"),
    "gate": ("out/gate.json",),
    "report": ("out/report.html",),
}


def write_run(
    root: Path,
    value: float = 0.0,
    *,
    champion: str | None = None,
    gain_over_champion: float = 0.1,
    doubt: str = "",
    rules: Mapping[str, RuleSettings] = RULES,
    make: Callable[[Path, float], None] = checkpoint,
) -> Layout:
    """What a healthy run leaves, its own gate and `dvc.lock` included.

    Args:
        value: of its weights.
        champion: digest of a checkpoint that it was compared with.
        gain_over_champion: mean gain over that checkpoint.
        doubt: why a refusal of triage was overridden, which leaves the decision to a person.
        rules: that its health was watched by.
        make: writes its checkpoint.
    """
    layout = Layout(root)
    make(layout.train_checkpoint, value)
    digest = sha256_tree(layout.train_checkpoint)
    named = ChampionSettings(path=Path("champion"), sha256=champion) if champion else None
    settings = Settings(
        train=TrainSettings(steps=STEPS),
        health=HealthSettings(rules=dict(rules)),
        evaluation=EvaluationSettings(champion=named),
    )
    write_text(layout.params, dump(settings))
    _log(layout, rules)
    rate = {"rate": 0.0, "high": 0.001}
    write_json(layout.validation, {"rows": 100, "quarantined": 1, "success": True})
    write_jsonl(layout.split("test"), [{"id": "p1", "text": "1 + 1", "answer": "2"}])
    measured = {"kinds": [], "false_positive": rate, "false_negative": rate}
    write_json(layout.audit, {"verdict": "pass", "reasons": [], **measured})
    write_json(layout.admission, {"verdict": "clear", "withheld": [], "flagged": []})
    write_json(layout.triage, {"verdict": "refuse" if doubt else "accept", "reasons": []})
    trained = {"outcome": "completed", "steps": STEPS, "progress": STEPS, "checkpoint_sha256": digest}
    said = {"audit": "pass", "triage": "overridden" if doubt else "accept", "override": doubt}
    write_json(layout.train_metrics, {**trained, **said})
    _evaluation(layout, digest, champion, gain_over_champion)
    write_json(layout.canaries, {"said": "", "sets": {}, "checkpoint_sha256": digest})
    write_text(layout.report, "<!doctype html>")
    run_gate(settings, layout)
    write_lock(layout)
    return layout


def _log(layout: Layout, rules: Mapping[str, RuleSettings]) -> None:
    records = [StepRecord(step, SIGNALS) for step in range(STEPS)]
    write_jsonl(layout.records, [record.to_dict() for record in records])
    write_jsonl(layout.train / "verdicts.jsonl", [verdict.to_dict() for verdict in replay(rules, records)])
    write_jsonl(layout.ledger, [])


def _evaluation(layout: Layout, digest: str, champion: str | None, mean: float) -> None:
    side = {"truncated_share": 0.01, "unscorable_share": 0.0}
    gain = {"mean": 0.4, "low": 0.35, "high": 0.45, "confidence": 0.95, "n": 512}
    clean = {"worst_share": 0.0, "worst": "test"}
    found: dict[str, Any] = {"sft": side, "trained": side, "gain": gain, "contamination": clean}
    found["checkpoint_sha256"] = digest
    if champion:
        found["champion"] = side
        found["gain_over_champion"] = {**gain, "mean": mean, "low": mean - 0.04, "high": mean + 0.04}
    write_json(layout.evaluation, found)


def write_lock(layout: Layout) -> None:
    """What DVC would have recorded of the run as it lies there."""
    stages: dict[str, Any] = {
        name: {"cmd": name, "outs": [{"path": path} for path in OUTS.get(name, ())]} for name in PIPELINE
    }
    layout.lock.write_text(yaml.safe_dump({"schema": "2.0", "stages": stages}))
    found = outputs(layout.root)
    for stage in stages.values():
        for out in stage["outs"]:
            out["md5"] = found[out["path"]]
    train = {"train.steps": STEPS}
    stages["gate"] |= {"deps": [{"path": "out/train", "md5": found["out/train"]}], "params": {"params.yaml": train}}
    layout.lock.write_text(yaml.safe_dump({"schema": "2.0", "stages": stages}))


def lineage(layout: Layout, **other: Any) -> dict[str, Any]:
    """What the flow would say of the run."""
    return {
        "schema": 1,
        "run": layout.root.name,
        "started_by": ["grace"],
        "branch": f"runs/{layout.root.name}",
        "commit": "1" * 40,
        "tree": "2" * 40,
        "committed": True,
        "inputs": [{"path": "inputs/rows.jsonl", "sha256": "3" * 64, "kept_by": "git"}],
        "code_sha256": "4" * 64,
        "packages_sha256": "5" * 64,
        "checkpoint_sha256": sha256_tree(layout.train_checkpoint),
        "outputs": outputs(layout.root),
        **other,
    }


def empty_project(project: Path) -> None:
    """A committed project with our configurations and a pipeline without stages."""
    shutil.copytree(ROOT / "configs", project / "configs")
    (project / "dvc.yaml").write_text("stages: {}\n")
    git(project, "init", "--quiet")
    commit(project)


def commit(project: Path) -> None:
    """The project's configurations as they are, in its own history, as whoever decides needs them."""
    git(project, "add", "configs")
    git(project, "commit", "--quiet", "--allow-empty", "--message=configs", extra=IDENTITY)


def key_in(folder: Path) -> Path:
    """A key to sign checkpoints with, made the first time."""
    path = folder / "checkpoints.pem"
    return path if path.exists() else write_key(new_key("checkpoints"), path)


def policy_of(key: Path, **settings: Any) -> Policy:
    """A policy that trusts this key and judges by the default rules."""
    return Policy(PromotionPolicy.model_validate(settings), RULES, {"test": public_pem(read_key(key))})


def propose_run(
    store: Store,
    layout: Layout,
    key: Path | None,
    *,
    started_by: tuple[str, ...] = ("grace",),
    said: Mapping[str, Any] | None = None,
) -> Candidate:
    """Propose a run as the flow does.

    Args:
        said: what its lineage says otherwise.
    """
    evidence = layout.root / "evidence"
    gather(layout, lineage(layout, **{"started_by": list(started_by), **(said or {})}), evidence)
    origin = {"run": layout.root.name, "commit": "1" * 40, "tree": "2" * 40, "started_by": list(started_by)}
    return propose(store, layout.train_checkpoint, evidence, read_json(layout.gate), origin, key=key)


@cache
def _written(value: float, champion: str | None, doubt: str) -> tempfile.TemporaryDirectory[str]:
    """A folder with such a run, of which every candidate is given a copy; it is removed when this process ends."""
    folder = tempfile.TemporaryDirectory()
    write_run(Path(folder.name) / f"demo-{value:g}", value, champion=champion, doubt=doubt)
    return folder


def propose_in(
    project: Path,
    value: float = 0.0,
    *,
    champion: str | None = None,
    doubt: str = "",
    started_by: tuple[str, ...] = ("grace",),
    **said: Any,
) -> Candidate:
    """A candidate in the registry of a project, signed with its key, that the gate lets pass.

    Args:
        champion: digest of the present one, which it must have been compared with.
        doubt: see `write_run`; the gate is inconclusive then.
        said: what its lineage says otherwise.
    """
    with tempfile.TemporaryDirectory() as folder:
        run = f"demo-{value:g}"
        layout = Layout(Path(shutil.copytree(Path(_written(value, champion, doubt).name) / run, Path(folder) / run)))
        key = signing_key(project, load_policy(project))
        return propose_run(DirectoryStore(project / "registry"), layout, key, started_by=started_by, said=said)
