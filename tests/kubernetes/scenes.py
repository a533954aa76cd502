"""What a real cluster (Kubernetes 1.36.2, JobSet 0.12.0) showed of runs to which something happened.

`observed/` holds one file a scene, less what nothing looks at. Images were busybox, and memory was scarce. When they
were recorded the loop had a pod of its own, `driver`. The files have been rewritten to the learner that it is in now:
where there were both, one of the two jobs was taken out, and `driver` was renamed.
"""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from components.launch.kubernetes.observed import Observed, role_of

FOLDER = Path(__file__).parent / "observed"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


@cache
def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


def content(name: str) -> dict[str, Any]:
    """One that may be changed."""
    return copy.deepcopy(_read(name))


def observed(found: dict[str, Any]) -> Observed:
    parts = (tuple(found[part]) for part in ("jobs", "pods", "events"))
    return Observed(found["jobset"], *parts, name=found["name"])


def scene(name: str) -> Observed:
    return observed(content(name))


def of_role(found: dict[str, Any], kind: str, role: str) -> dict[str, Any]:
    """The first job or pod of a role in a scene."""
    return next(one for one in found[kind] if role_of(one) == role)
