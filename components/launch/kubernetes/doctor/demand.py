"""What the configuration requests."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from components.config import Settings
from components.config.kubernetes import KubernetesSettings, VolumeState
from components.launch.kubernetes.names import MAIN
from components.launch.kubernetes.plan import RunPlan, Submission, plan_run

RUN = "doctor"


def demand(settings: Settings, how: KubernetesSettings) -> RunPlan:
    """The plan of a training run that is never submitted, in a folder that pods would see."""
    folder = Path(how.shared.path if isinstance(how.shared, VolumeState) else "/work") / RUN
    return plan_run(settings, Submission(MAIN, folder, RUN, how.owner or RUN, "", "", datetime.now(UTC)))
