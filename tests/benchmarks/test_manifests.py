"""The time that a run of a thousand pods takes to render and validate: ``pytest -s`` on this file."""

from __future__ import annotations

from time import perf_counter

from components.launch.kubernetes.showing import as_yaml, manifests
from tests.kubernetes.profiles import plan
from tests.kubernetes.validation import problems

LIMIT = 1.0
"""Seconds for all of it, schemas read from disk included."""


def test_a_thousand_pods_are_rendered_and_validated_within_a_second() -> None:
    started = perf_counter()
    large = plan("gpu", "rollout.engine.processes=983", "learner.ranks.processes=128")
    planned = perf_counter()
    objects = manifests(large)
    text = as_yaml(objects)
    rendered = perf_counter()
    found = [problem for one in objects for problem in problems(one)]
    validated = perf_counter()
    pods = sum(role.count for role in large.roles)
    print(
        f"\n{pods} pods, {len(text)} characters: settings and plan {planned - started:.3f} s, "
        f"rendered {rendered - planned:.3f} s, validated {validated - rendered:.3f} s"
    )
    assert pods == 1000 and found == []
    assert validated - started <= LIMIT
