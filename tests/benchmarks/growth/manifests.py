"""A run of so many pods: its manifests made, written as YAML, and validated by the API's schemas."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.growth.curve import Cost, Curve
from tests.benchmarks.growth.measures import cpu_s, least_ms
from tests.benchmarks.section import Row

GPUS = 8
"""Of a learner's pod: so many ranks."""


def profile(pods: int) -> tuple[str, ...]:
    """At least one pod of 128 learns, the others sample; a single one does everything."""
    if pods < 2:
        return ("one-pod",)
    learners = 1 << max(0, (pods // 64).bit_length() - 1)  # a step has to divide by them
    return ("gpu", f"rollout.engine.processes={pods - learners}", f"learner.ranks.processes={GPUS * learners}")


def measure(size: int, folder: Path) -> Row:
    """Schemas are read from disk before the clock starts."""
    from components.launch.kubernetes.manifests import as_yaml, jobset
    from tests.kubernetes.profiles import plan
    from tests.kubernetes.validation import problems

    plan("gpu")
    large = plan(*profile(size))
    found = sum(role.count for role in large.roles)
    if abs(found - size) > 1:
        raise ValueError(f"{found} pods instead of {size}: {[(role.name, role.count) for role in large.roles]}")
    manifest = jobset(large)
    if wrong := problems(manifest):
        raise ValueError(f"not what the API server takes: {wrong[:3]}")
    return {
        "plan_ms": 1e3 * cpu_s(lambda: plan(*profile(size))),
        "render_ms": least_ms(lambda: as_yaml(jobset(large))),
        "validate_ms": least_ms(lambda: problems(manifest), repeats=3),
    }


CURVE = Curve(
    "pods", "manifests", (1, 10, 100, 1000), 10, measure,
    (
        Cost("plan_ms", "settings and plan"),
        Cost("render_ms", "rendered as YAML"),
        Cost("validate_ms", "validated by schemas"),
    ),
)  # fmt: skip
