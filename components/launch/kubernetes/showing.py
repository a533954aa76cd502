"""Manifests as text, for people and for `kubectl apply`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from components.launch.kubernetes.manifests import jobset, secret
from components.launch.kubernetes.plan import RunPlan


class _Plain(yaml.SafeDumper):
    """Repeats what occurs twice instead of pointing at it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def manifests(plan: RunPlan, key: str = "made-when-it-is-submitted") -> list[dict[str, Any]]:
    """All objects of a run, in the order in which they are created."""
    return [jobset(plan), *([secret(plan, key)] if plan.has_learner else [])]


def as_yaml(objects: Iterable[dict[str, Any]]) -> str:
    """One YAML document each."""
    return yaml.dump_all(objects, Dumper=_Plain, sort_keys=False, width=120)
