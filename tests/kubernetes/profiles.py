"""Runs on a cluster whose manifests are kept in `golden/`; ``python -m tests.kubernetes.profiles`` writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from components.config import load
from components.launch.kubernetes.manifests import as_yaml, jobset
from components.launch.kubernetes.plan import USER, RunPlan, Submission, plan_run

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
CPU, GPU = "configs/kubernetes.yaml", "configs/kubernetes-gpu.yaml"
KUBERNETES = "launch.kubernetes"
PROFILES: dict[str, tuple[str, list[str]]] = {
    "cpu": (CPU, []),
    "gpu": (GPU, []),
    "one-pod": (CPU, ["rollout.engine={kind: torch}", "learner.kind=torch", "learner.ranks.processes=2"]),
    "s3": (
        CPU,
        [
            f"{KUBERNETES}.shared={{kind: s3, uri: 's3://bucket/runs', endpoint_url: 'http://minio.storage:9000'}}",
            f"{KUBERNETES}.secrets=[evenkeel-s3]",
            "rollout.engine.transfer=broadcast",
        ],
    ),
    "queued": (
        GPU,
        [
            f"{KUBERNETES}.queue=training",
            f"{KUBERNETES}.learner.priority_class=evenkeel-nightly",
            f"{KUBERNETES}.learner.runtime_class=nvidia",
            f"{KUBERNETES}.pull_secrets=[registry]",
        ],
    ),
}


def plan(name: str, *overrides: str, user: int = USER) -> RunPlan:
    """The plan of a profile; the same one every time."""
    config, own = PROFILES[name]
    submission = Submission(
        stage="train",
        workspace=Path("/shared/project/runs/arithmetic-1"),
        run="arithmetic-1",
        owner="ada",
        code="c" * 64,
        constraints="d" * 64,
        now=datetime(2026, 1, 1, tzinfo=UTC),
        user=user,
    )
    return plan_run(load(ROOT / config, [*own, *overrides]), submission)


def golden(name: str) -> Path:
    return GOLDEN / f"{name}.yaml"


def main() -> None:
    for name in PROFILES:
        golden(name).write_text(as_yaml(jobset(plan(name))), "utf-8")


if __name__ == "__main__":
    main()
